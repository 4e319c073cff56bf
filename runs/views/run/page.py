"""The page of one run: its steps, live updates, approvals and actions."""

import json
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRedirect

from runs.htmx import HtmxRequest, render_page_or_part, wants_part
from runs.models import Decision, Run, StepMedia
from runs.services.conversations.messages import send_message
from runs.services.errors import ArgumentsRefused, RunsError
from runs.services.runs.cancel import cancel_run
from runs.services.runs.keep import keep_runs
from runs.ui.list_of_run import keep_list
from runs.ui.list_state import LIST_STATE_HEADER, get_run_state, knows_list_state
from runs.views.approvals.details import list_run_allowances, list_run_decisions
from runs.views.approvals.page import submit_answer
from runs.views.approvals.refused import (
    NO_REFUSALS,
    Refusals,
    show_refused_answer,
    show_typed_answers,
)
from runs.views.run.banner import build_banner
from runs.views.run.context import (
    list_context,
    page_context,
    pane_context,
    rows_context,
    select_page_relations,
)
from runs.views.run.conversation import (
    ContinueForm,
    build_continue_form,
    build_next_inputs,
)
from runs.views.run.feedback import feedback_context
from runs.views.run.fork_tree import build_fork_tree
from runs.views.run.params import parse_run_page_params
from runs.views.run.raw_texts import get_raw_text
from runs.views.run.state import load_run_state, run_state_context
from runs.views.run.step_detail import find_row_record
from runs.views.run.timeline import load_timeline
from runs.views.run.window import find_next_error
from runs.whole_number import parse_whole_number
from tools.media import AUDIO_TYPES, IMAGE_TYPES

MEDIA_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "private, max-age=86400, immutable",
    "X-Content-Type-Options": "nosniff",
}

CONTENT_TYPES = {"txt": "text/plain; charset=utf-8", "json": "application/json"}


@require_GET
def run_detail(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the run; for htmx only one pane: the selected step, or the steps."""
    run = get_visible_run(request, pk)
    if wants_steps_pane(request):
        context, part = list_context(run, request.GET), "runs/_steps_pane.html"
    else:
        make = pane_context if wants_part(request) else page_context
        context, part = make(run, request.GET), "runs/_detail.html"
        context["continuing"] = build_continue_form(run, request.user)
        if context["pane"].is_answer:
            context |= feedback_context(run, request.user)
        context |= build_decisions_context(run, request)
        if not wants_part(request):
            context["questions"] = show_refused_answer(request, context["questions"])
        context["family"] = build_fork_tree(run, request.user)
    return render_page_or_part(request, "runs/detail.html", part, context)


def wants_steps_pane(request: HtmxRequest) -> bool:
    """Whether htmx requests the left pane, which is then its target."""
    target = request.headers.get("HX-Target", "")
    return wants_part(request) and target.endswith("run-steps-pane")


@require_GET
def run_rows(request: HtmxRequest, pk: int) -> HttpResponse:
    """Render the rows before `?before=` or after `?after=`."""
    run, choice = get_visible_run(request, pk), parse_run_page_params(request.GET)
    context = rows_context(run, load_timeline(run), choice)
    return render(request, "runs/_rows.html", context)


@require_GET
def run_next_error(request: HtmxRequest, pk: int) -> HttpResponse:
    """Redirect to the next row with an error after `?after=`."""
    run, choice = get_visible_run(request, pk), parse_run_page_params(request.GET)
    number = find_next_error(run, choice.after or 0)
    query = choice.query(step=number, show=choice.show if number else "")
    return redirect(f"{reverse('run-detail', args=[pk])}?{query}")


@require_GET
def run_actions(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the actions; to the page of an ended run only if it was resumed."""
    run = get_visible_run(request, pk)
    if knows_list_state(request, get_run_state(run)):
        return HttpResponse(status=204)
    was_resumed = LIST_STATE_HEADER in request.headers
    return render(
        request, "runs/_actions.html", {"run": run, "was_resumed": was_resumed}
    )


@require_http_methods(["GET", "POST"])
def run_banner(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the banner; POST decides one call and leaves the others as they are.

    The last decision leads to the page of the run.
    """
    run = get_visible_run(request, pk)
    if request.method == "GET":
        return render_banner(request, run)
    number = parse_whole_number(request.POST.get("decision", ""))
    decision = get_object_or_404(Decision, pk=number, step__run=run)
    try:
        message = submit_answer(decision, request)
    except ArgumentsRefused as refused:
        return render_banner(request, run, refusals={decision.pk: refused.errors})
    except RunsError as refused:
        return render_banner(request, run, error=str(refused))
    run = get_visible_run(request, pk)
    if run.needs_a_person:
        return render_banner(request, run)
    messages.success(request, message)
    url = keep_list(request, reverse("run-detail", args=[pk]))
    return HttpResponseClientRedirect(url)


def render_banner(
    request: HtmxRequest, run: Run, *, error: str = "", refusals: Refusals = NO_REFUSALS
) -> HttpResponse:
    """Render the banner, with the typed answers of the calls in `refusals`."""
    context = banner_context(run, error=error) | build_decisions_context(run, request)
    context["questions"] = show_typed_answers(
        context["questions"], request.POST, refusals
    )
    return render(request, "runs/_banner.html", context)


@require_POST
def run_stop(request: HtmxRequest, pk: int) -> HttpResponse:
    run = get_visible_run(request, pk)
    cancel_run(run, by=request.user)
    if wants_part(request):
        return render(
            request, "runs/_actions.html", {"run": get_visible_run(request, pk)}
        )
    return redirect("run-detail", pk)


@require_POST
def run_keep(request: HtmxRequest, pk: int) -> HttpResponse:
    """Keep the run forever, or with `keep=0` no longer."""
    run = get_visible_run(request, pk)
    keep_runs([run], keep=request.POST.get("keep") != "0", by=request.user)
    if wants_part(request):
        context = {"run": get_visible_run(request, pk)}
        return render(request, "runs/_actions.html", context)
    return redirect(keep_list(request, reverse("run-detail", args=[pk])))


@require_http_methods(["GET", "POST"])
def run_continue(request: HtmxRequest, pk: int) -> HttpResponse:
    """Send the next message in the conversation of the run; GET renders the form."""
    run = get_visible_run(request, pk)
    form = build_continue_form(run, request.user)
    if request.method == "GET":
        context = {"run": run, "continuing": form}
        return render(request, "runs/_continue.html", context)
    if not form.is_allowed:
        raise Http404
    text = request.POST.get("input", "")
    if not text.strip():
        return render_continue_error(
            request, run, replace(form, error=_("Enter a message."))
        )
    try:
        new = send_message(
            run.agent,
            by=request.user,
            inputs=build_next_inputs(run, text),
            conversation=run.conversation,
            draft=run.version_id is None,
            is_test=run.is_test,
        )
    except RunsError as refused:
        return render_continue_error(
            request, run, replace(form, text=text, error=str(refused))
        )
    return redirect("run-detail", new.pk)


def render_continue_error(
    request: HtmxRequest, run: Run, form: ContinueForm
) -> HttpResponse:
    """Show the page again with the message and its error."""
    context = page_context(run, {"step": "0"})
    context["continuing"] = form
    return render(request, "runs/detail.html", context)


@require_GET
def run_answer(request: HtmxRequest, pk: int) -> HttpResponse:
    """Download the answer: Markdown, or JSON if it is not text."""
    run = get_visible_run(request, pk)
    if run.answer is None:
        raise Http404
    if isinstance(run.answer, str):
        return build_text_download(
            run.answer, f"run-{pk}.md", "text/markdown; charset=utf-8"
        )
    text = json.dumps(run.answer, ensure_ascii=False, indent=2)
    return build_text_download(text, f"run-{pk}.json", "application/json")


@require_GET
def run_raw(request: HtmxRequest, pk: int, number: int, what: str) -> HttpResponse:
    run = get_visible_run(request, pk)
    place = find_row_record(run, number)
    if place is None:
        raise Http404
    if (found := get_raw_text(run, place, what)) is None:
        raise Http404
    name = f"run-{pk}-step-{number}-{what}.{found.kind}"
    return build_text_download(found.text, name, CONTENT_TYPES[found.kind])


@require_GET
def run_media(
    request: HtmxRequest, pk: int, number: int, position: int
) -> HttpResponse:
    """Show an image or sound of a step; it never changes."""
    place = find_row_record(get_visible_run(request, pk), number)
    step = place.step if place else None
    media = get_object_or_404(StepMedia, step=step, position=position)
    if media.media_type not in IMAGE_TYPES + AUDIO_TYPES:
        raise Http404
    return HttpResponse(
        bytes(media.content), content_type=media.media_type, headers=MEDIA_HEADERS
    )


@require_GET
def run_live(request: HttpRequest, pk: int) -> HttpResponse:
    """Give the live stream a URL name; ASGI routes its requests elsewhere."""
    raise Http404


def get_visible_run(request: HtmxRequest, pk: int) -> Run:
    return get_object_or_404(
        select_page_relations(Run.objects.visible_to(request.user)), pk=pk
    )


def build_decisions_context(run: Run, request: HtmxRequest) -> dict[str, Any]:
    """Return the open approvals of the run, and the allowances given for it."""
    return {
        "questions": list_run_decisions(run, request.user),
        "allowances": list_run_allowances(run),
    }


def banner_context(run: Run, *, error: str = "") -> dict[str, Any]:
    state = load_run_state(run, load_timeline(run))
    return {**run_state_context(state), "banner": build_banner(state, error=error)}


def build_text_download(text: str, name: str, kind: str) -> HttpResponse:
    response = HttpResponse(text.encode("utf-8", "replace"), content_type=kind)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
