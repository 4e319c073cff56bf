"""The chat pages."""

from typing import Any, NamedTuple

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from runs.forms.runs.inputs import RunForm, input_field_name
from runs.forms.runs.limits import LimitsForm
from runs.htmx import HtmxRequest, render_page_or_part, wants_part
from runs.models import Agent, Conversation, Run
from runs.models.runs import UNFINISHED_STATUSES
from runs.services.conversations.messages import (
    branch_conversation,
    send_message,
    update_all_branches,
)
from runs.services.errors import InputsRefused, RunsError
from runs.services.runs.cancel import cancel_run
from runs.services.runs.conversation_runs import get_conversation_turns
from runs.services.runs.limits import get_current_limits
from runs.services.runs.resume import resume_run
from runs.store.history import extract_question
from runs.views.chat.branches import TurnBranches, load_turn_branches
from runs.views.chat.turns import RunTurn, build_run_turns, build_stream_key
from runs.views.run.banner import propose_resume_limits
from runs.views.run.context import select_page_relations
from runs.whole_number import parse_whole_number

MAX_CONVERSATIONS = 50
"""Conversations in the list."""
MAX_BRANCHES = 250
"""Newest branches among which the conversations of the list are found."""
TURNS_PER_PAGE = 50
"""Turns of a conversation on its page."""


class ConversationRow(NamedTuple):
    """A conversation in a list."""

    conversation: Conversation
    status: str
    last: str
    """The newest question."""


class ChatTurn(NamedTuple):
    """A question, its run, and the other branches at this message."""

    question: str
    run: Run
    turn: RunTurn
    branches: TurnBranches


@require_GET
def chat(request: HtmxRequest) -> HttpResponse:
    """Show the agents of the user and the newest conversations."""
    agents = Agent.objects.usable_by(request.user).filter(archived_at=None)
    conversations = build_conversation_rows(query_own_conversations(request.user))
    context = {
        "agents": agents.order_by("name"),
        "conversations": conversations,
        "has_unfinished": has_unfinished(conversations),
    }
    return render_page_or_part(
        request, "chat/chat.html", "chat/_conversations.html", context
    )


@require_GET
def chat_agent(request: HtmxRequest, slug: str) -> HttpResponse:
    """Show the user's conversations with an agent, and the form for a new one."""
    agent = get_usable_agent(request.user, slug)
    return render_conversation(request, agent, None, RunForm(agent))


@require_GET
def chat_conversation(request: HtmxRequest, slug: str, pk: int) -> HttpResponse:
    """Show one conversation."""
    agent = get_usable_agent(request.user, slug)
    conversation = get_own_conversation(request.user, agent, pk)
    return render_conversation(
        request, agent, conversation, build_next_turn_form(agent, conversation)
    )


@require_GET
def chat_newer(request: HtmxRequest, slug: str, pk: int, after: int) -> HttpResponse:
    """Say how many messages were sent elsewhere since the page was loaded."""
    agent = get_usable_agent(request.user, slug)
    conversation = get_own_conversation(request.user, agent, pk)
    newer = get_conversation_turns(conversation).filter(pk__gt=after).count()
    context = {
        "agent": agent,
        "conversation": conversation,
        "newest": after,
        "newer": newer,
    }
    return render(request, "chat/_newer.html", context)


@require_POST
def chat_say(request: HtmxRequest, slug: str) -> HttpResponse:
    """Send a message in a conversation, or start a new one with it."""
    agent = get_usable_agent(request.user, slug)
    asked = parse_whole_number(request.POST.get("conversation_id", ""))
    conversation = (
        None if asked is None else get_own_conversation(request.user, agent, asked)
    )
    form = RunForm(agent, request.POST)
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
            return redirect("chat-conversation", slug, run.conversation_id)
    return render_conversation(request, agent, conversation, form)


@require_POST
def chat_branch(request: HtmxRequest, slug: str, pk: int, run_pk: int) -> HttpResponse:
    """Branch at a run with another message; with the same one if it is empty.

    The new branch is part of the same conversation.
    """
    agent = get_usable_agent(request.user, slug)
    conversation = get_own_conversation(request.user, agent, pk)
    run = get_object_or_404(get_conversation_turns(conversation), pk=run_pk)
    text = request.POST.get("input", "")
    name = "input" if "input" in run.inputs else next(iter(run.inputs), "input")
    inputs = {**run.inputs, name: text} if text.strip() else run.inputs
    try:
        new = branch_conversation(conversation, at=run, by=request.user, inputs=inputs)
    except RunsError as refused:
        messages.error(request, str(refused))
        return redirect("chat-conversation", slug, pk)
    return redirect("chat-conversation", slug, new.conversation_id)


@require_POST
def chat_stop(request: HtmxRequest, slug: str, pk: int) -> HttpResponse:
    """Cancel the unfinished runs of a conversation."""
    conversation = get_own_conversation(
        request.user, get_usable_agent(request.user, slug), pk
    )
    for run in get_conversation_turns(conversation).filter(ended_at=None):
        cancel_run(run, by=request.user)
    return redirect("chat-conversation", slug, pk)


@require_POST
def chat_resume(request: HtmxRequest, slug: str, pk: int, run_pk: int) -> HttpResponse:
    """Resume a run of the conversation; twice the limit that ended it applies."""
    conversation = get_own_conversation(
        request.user, get_usable_agent(request.user, slug), pk
    )
    run = get_object_or_404(get_conversation_turns(conversation), pk=run_pk)
    limits = get_current_limits(run)
    form = LimitsForm(limits, propose_resume_limits(run, limits))
    options = form.changed_options() if form.is_valid() else {}
    try:
        resume_run(run, by=request.user, limits=options)
    except RunsError as refused:
        messages.error(request, str(refused))
    return redirect("chat-conversation", slug, pk)


@require_POST
def chat_rate(request: HtmxRequest, slug: str, pk: int, run_pk: int) -> HttpResponse:
    """Rate an answer; the same rating again removes it."""
    conversation = get_own_conversation(
        request.user, get_usable_agent(request.user, slug), pk
    )
    run = get_object_or_404(get_conversation_turns(conversation), pk=run_pk)
    asked = {"good": 1, "poor": -1}.get(request.POST.get("rating", ""))
    rating = None if run.rating == asked else asked
    Run.objects.filter(pk=run.pk).update(rating=rating)
    page = request.path.split("/rate/")[0]
    is_late = (
        get_conversation_turns(conversation).filter(pk__gt=run.pk).count()
        < TURNS_PER_PAGE
    )
    window = "" if is_late else f"?before={run.pk + 1}"
    return redirect(f"{page}/{window}#chat-turn-{run.pk}")


@require_POST
def chat_rename(request: HtmxRequest, slug: str, pk: int) -> HttpResponse:
    conversation = get_own_conversation(
        request.user, get_usable_agent(request.user, slug), pk
    )
    title = " ".join(request.POST.get("title", "").replace("\0", "").split())
    if not title or len(title) > 200:
        messages.error(request, _("Enter a title of 1 to 200 characters."))
    else:
        update_all_branches(conversation, title=title)
    return redirect("chat-conversation", slug, pk)


@require_POST
def chat_archive(request: HtmxRequest, slug: str, pk: int) -> HttpResponse:
    """Archive a conversation with its branches; its runs stay in the run list."""
    conversation = get_own_conversation(
        request.user, get_usable_agent(request.user, slug), pk
    )
    update_all_branches(conversation, archived_at=timezone.now())
    messages.success(request, _("Conversation archived."))
    return redirect("chat-agent", slug)


def get_usable_agent(user: User, slug: str) -> Agent:
    """Return an agent that the user may use; 404 otherwise."""
    return get_object_or_404(Agent.objects.usable_by(user), slug=slug)


def get_own_conversation(user: User, agent: Agent, pk: int) -> Conversation:
    """Return a conversation of the user; 404 otherwise."""
    mine = Conversation.objects.select_related("agent", "branch_of")
    return get_object_or_404(mine, pk=pk, owner=user, agent=agent, is_test=False)


def query_own_conversations(user: User) -> QuerySet[Conversation]:
    """Return the user's conversations with what lists show, newest first.

    Those with agents that the user may no longer use are left out: their pages are 404.
    """
    newest = Run.objects.filter(conversation=OuterRef("pk")).order_by("-pk")
    return (
        Conversation.objects.filter(owner=user, is_test=False, archived_at=None)
        .filter(agent__in=Agent.objects.usable_by(user))
        .select_related("agent")
        .annotate(
            status=Subquery(newest.values("status")[:1]),
            last=Subquery(newest.values("title")[:1]),
            last_pk=Subquery(newest.values("pk")[:1]),
            last_at=Subquery(newest.values("created_at")[:1]),
        )
        .filter(last_pk__isnull=False)
        .order_by("-last_pk")
    )


def build_conversation_rows(
    conversations: QuerySet[Conversation],
) -> list[ConversationRow]:
    """Return the newest conversations as rows, each with its newest branch."""
    found: list[Any] = list(conversations[:MAX_BRANCHES])  # annotated above
    newest: dict[int, Any] = {}
    for conversation in found:
        newest.setdefault(conversation.root_pk, conversation)
    rows = list(newest.values())[:MAX_CONVERSATIONS]
    return [
        ConversationRow(conversation, conversation.status, conversation.last)
        for conversation in rows
    ]


def has_unfinished(conversations: list[ConversationRow]) -> bool:
    """Whether a conversation in the list has an unfinished run."""
    return any(row.status in UNFINISHED_STATUSES for row in conversations)


def build_next_turn_form(agent: Agent, conversation: Conversation) -> RunForm:
    """Return the form of the next message, with the last run's other inputs."""
    last = get_conversation_turns(conversation).order_by("-pk").first()
    given = {k: v for k, v in (last.inputs if last else {}).items() if k != "input"}
    return RunForm(
        agent, initial={input_field_name(name): v for name, v in given.items()}
    )


def render_conversation(
    request: HtmxRequest, agent: Agent, conversation: Conversation | None, form: RunForm
) -> HttpResponse:
    """Show a conversation or the form for one; to HTMX only the list next to it."""
    conversations = build_conversation_rows(
        query_own_conversations(request.user).filter(agent=agent)
    )
    context: dict[str, Any] = {
        "agent": agent,
        "conversation": conversation,
        "conversations": conversations,
        "has_unfinished": has_unfinished(conversations),
    }
    if not wants_part(request):
        writes = (
            conversation
            or not conversations
            or "new" in request.GET
            or request.method == "POST"
        )
        view = 2 if writes else 1  # on a phone: the conversation, or the list
        context |= build_turns_context(request, conversation) | {
            "form": form,
            "view": view,
        }
    return render_page_or_part(
        request, "chat/conversation.html", "chat/_list.html", context
    )


def build_turns_context(
    request: HtmxRequest, conversation: Conversation | None
) -> dict[str, Any]:
    """Return the part of the conversation that its page shows."""
    said = get_conversation_turns(conversation) if conversation else Run.objects.none()
    before = parse_whole_number(request.GET.get("before", ""))
    runs = load_newest_runs(said, before=before)
    has_earlier = len(runs) > TURNS_PER_PAGE
    runs = runs[-TURNS_PER_PAGE:]
    return {
        "turns": build_chat_turns(conversation, runs) if conversation else [],
        "live": build_stream_key(runs[-8:]),
        "is_busy": any(not run.is_over for run in runs),
        "earlier": runs[0].pk if has_earlier else None,
        "newest": runs[-1].pk if runs else 0,
        "is_window": before is not None,
    }


def load_newest_runs(said: QuerySet[Run], *, before: int | None) -> list[Run]:
    """Return the newest runs, oldest first, one more than the page shows."""
    if before is not None:
        said = said.filter(pk__lt=before)
    runs = select_page_relations(said).select_related("conversation__branch_of")
    return list(runs.order_by("-pk")[: TURNS_PER_PAGE + 1])[::-1]


def build_chat_turns(conversation: Conversation, runs: list[Run]) -> list[ChatTurn]:
    """Return each turn with the other branches at its place."""
    branches = load_turn_branches(conversation, runs)
    return [
        ChatTurn(extract_question(run.inputs), run, turn, branches[run.pk])
        for run, turn in zip(runs, build_run_turns(runs), strict=True)
    ]
