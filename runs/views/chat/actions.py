"""What people do in a conversation: send, branch, stop, rate, rename, archive."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRedirect

from runs.forms.runs.inputs import RunForm, input_field_name
from runs.forms.runs.limits import LimitsForm
from runs.htmx import HtmxRequest
from runs.models import Run
from runs.services.conversations.messages import (
    branch_conversation,
    continue_answer,
    resume_answer,
    send_message,
    update_all_branches,
)
from runs.services.errors import InputsRefused, RunsError
from runs.services.runs.cancel import cancel_run
from runs.services.runs.conversation_runs import get_conversation_turns
from runs.services.runs.limits import get_current_limits
from runs.ui.frame.undo import add_message_with_undo
from runs.views.chat.access import get_own_conversation, get_usable_agent
from runs.views.chat.conversation import render_conversation, render_new_conversation
from runs.views.run.banner import propose_resume_limits
from runs.whole_number import parse_whole_number


@require_POST
def chat_say(request: HtmxRequest, slug: str) -> HttpResponse:
    """Send a message in a conversation, or start a new one with it."""
    asked = parse_whole_number(request.POST.get("conversation_id", ""))
    conversation = (
        None if asked is None else get_own_conversation(request.user, slug, asked)
    )
    agent = conversation.agent if conversation else get_usable_agent(request.user, slug)
    given = request.POST.copy()
    if "suggestion" in given:  # a button with its text
        given["input"] = request.POST.get("suggestion", "")
    form = RunForm(agent, given)
    if form.is_valid():
        try:
            run = send_message(
                agent, by=request.user, inputs=form.inputs(), conversation=conversation
            )
        except InputsRefused as error:
            form.add_field_errors(error.errors)
        except RunsError as error:
            form.add_error(None, str(error))
        else:
            return redirect_to_conversation(request, slug, run.conversation_id)
    if conversation is None:
        return render_new_conversation(request, agent, form)
    return render_conversation(request, conversation, form)


@require_POST
def chat_branch(request: HtmxRequest, slug: str, pk: int, run_pk: int) -> HttpResponse:
    """Branch at a run with another message; with the same one if it is empty.

    The new branch is part of the same conversation. In an archived one, the text moves
    to the message box.
    """
    conversation = get_own_conversation(request.user, slug, pk)
    run = get_object_or_404(get_conversation_turns(conversation), pk=run_pk)
    text = request.POST.get("input", "")
    name = "input" if "input" in run.inputs else next(iter(run.inputs), "input")
    inputs = {**run.inputs, name: text} if text.strip() else run.inputs
    try:
        new = branch_conversation(conversation, at=run, by=request.user, inputs=inputs)
    except RunsError as refused:
        if conversation.archived_at and text.strip():
            given = {input_field_name(name): value for name, value in inputs.items()}
            form = RunForm(conversation.agent, given)
            form.add_error(None, str(refused))
            return render_conversation(request, conversation, form)
        messages.error(request, str(refused))
        return redirect_to_conversation(request, slug, pk)
    return redirect_to_conversation(request, slug, new.conversation_id)


def redirect_to_conversation(
    request: HtmxRequest, slug: str, pk: int | None
) -> HttpResponse:
    """Redirect; the script that sent a message opens the page itself."""
    url = reverse("chat-conversation", args=[slug, pk])
    return HttpResponseClientRedirect(url) if request.htmx else redirect(url)


@require_POST
def chat_stop(request: HtmxRequest, slug: str, pk: int) -> HttpResponse:
    conversation = get_own_conversation(request.user, slug, pk)
    for run in get_conversation_turns(conversation).filter(ended_at=None):
        cancel_run(run, by=request.user)
    return redirect("chat-conversation", slug, pk)


@require_POST
def chat_resume(request: HtmxRequest, slug: str, pk: int, run_pk: int) -> HttpResponse:
    """Resume a run of the conversation; twice the limit that ended it applies."""
    conversation = get_own_conversation(request.user, slug, pk)
    run = get_object_or_404(get_conversation_turns(conversation), pk=run_pk)
    limits = get_current_limits(run)
    form = LimitsForm(limits, propose_resume_limits(run, limits))
    options = form.changed_options() if form.is_valid() else {}
    try:
        resume_answer(conversation, run=run, by=request.user, limits=options)
    except RunsError as refused:
        messages.error(request, str(refused))
    return redirect("chat-conversation", slug, pk)


@require_POST
def chat_continue(
    request: HtmxRequest, slug: str, pk: int, run_pk: int
) -> HttpResponse:
    """Ask the agent to continue an answer that was stopped."""
    conversation = get_own_conversation(request.user, slug, pk)
    run = get_object_or_404(get_conversation_turns(conversation), pk=run_pk)
    try:
        continue_answer(conversation, run=run, by=request.user)
    except RunsError as refused:
        messages.error(request, str(refused))
    return redirect("chat-conversation", slug, pk)


@require_POST
def chat_rate(request: HtmxRequest, slug: str, pk: int, run_pk: int) -> HttpResponse:
    """Rate an answer; the same rating again removes it."""
    conversation = get_own_conversation(request.user, slug, pk)
    run = get_object_or_404(get_conversation_turns(conversation), pk=run_pk)
    asked = {"good": 1, "poor": -1}.get(request.POST.get("rating", ""))
    rating = None if run.rating == asked else asked
    Run.objects.filter(pk=run.pk).update(rating=rating)
    page = reverse("chat-conversation", args=[slug, pk])
    return redirect(f"{page}?at={run.pk}#chat-turn-{run.pk}")


@require_POST
def chat_rename(request: HtmxRequest, slug: str, pk: int) -> HttpResponse:
    """Give a conversation and its branches another title."""
    conversation = get_own_conversation(request.user, slug, pk)
    title = " ".join(request.POST.get("title", "").replace("\0", "").split())
    if not title or len(title) > 200:
        messages.error(request, _("Enter a title of 1 to 200 characters."))
    else:
        update_all_branches(conversation, title=title)
        text = _("Renamed to %(name)s.") % {"name": title}
        if conversation.title:
            url = reverse("chat-rename", args=[slug, pk])
            add_message_with_undo(request, text, url, title=conversation.title)
        else:
            messages.success(request, text)
    return redirect("chat-conversation", slug, pk)


@require_POST
def chat_archive(request: HtmxRequest, slug: str, pk: int) -> HttpResponse:
    """Archive a conversation with its branches; its runs stay in the run list."""
    conversation = get_own_conversation(request.user, slug, pk)
    update_all_branches(conversation, archived_at=timezone.now())
    add_message_with_undo(
        request,
        _("Conversation archived."),
        reverse("chat-unarchive", args=[slug, pk]),
    )
    return redirect("chat")


@require_POST
def chat_unarchive(request: HtmxRequest, slug: str, pk: int) -> HttpResponse:
    """Put an archived conversation with its branches back into the list."""
    conversation = get_own_conversation(request.user, slug, pk)
    update_all_branches(conversation, archived_at=None)
    messages.success(request, _("Conversation unarchived."))
    return redirect("chat-conversation", slug, pk)
