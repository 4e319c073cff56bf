"""The page of one run: watch it, read any step, answer it, stop it."""

import json
from dataclasses import replace
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.htmx import HtmxRequest, page_or_part, wants_part
from runs.models import Run
from runs.services.cancel_run import cancel_run
from runs.services.errors import RunsError
from runs.services.start_run import start_run
from runs.views.questions import allowances_of, questions_of_run
from runs.views.run_banner import banner_of
from runs.views.run_choice import choice_of
from runs.views.run_context import (
    list_context,
    loaded,
    page_context,
    pane_context,
    rows_context,
)
from runs.views.run_detail import place_of
from runs.views.run_family import family_of
from runs.views.run_raw import raw_text
from runs.views.run_state import context_of, state_of
from runs.views.run_times import timeline_of
from runs.views.run_turns import Continuing, continuing_of, next_inputs
from runs.views.run_window import next_error

KINDS = {"txt": "text/plain; charset=utf-8", "json": "application/json"}


@require_GET
def detail(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the run; to htmx one of its sides: the chosen step, or the steps."""
    run = run_of(request, pk)
    if wants_steps(request):
        context, part = list_context(run, request.GET), "runs/_steps_pane.html"
    else:
        make = pane_context if wants_part(request) else page_context
        context, part = make(run, request.GET), "runs/_detail.html"
        context["continuing"] = continuing_of(run, request.user)
        context |= asked_of(run, request)
        context["family"] = family_of(run, request.user)
    answer = page_or_part(request, "runs/detail.html", part, context)
    patch_vary_headers(answer, ["HX-Target"])
    return answer


def wants_steps(request: HtmxRequest) -> bool:
    """Whether htmx asks for the left side: it then names it as its target."""
    target = request.headers.get("HX-Target", "")
    return wants_part(request) and target.endswith("run-steps-pane")


@require_GET
def rows(request: HtmxRequest, pk: int) -> HttpResponse:
    """Give the rows before `?before=` or after `?after=`, to be put beside others."""
    run, choice = run_of(request, pk), choice_of(request.GET)
    context = rows_context(run, timeline_of(run), choice)
    return render(request, "runs/_rows.html", context)


@require_GET
def find_error(request: HtmxRequest, pk: int) -> HttpResponse:
    """Lead to the next row after `?after=` that went wrong."""
    run, choice = run_of(request, pk), choice_of(request.GET)
    number = next_error(run, choice.after or 0)
    query = choice.query(step=number, show=choice.show if number else "")
    return redirect(f"{reverse('run-detail', args=[pk])}?{query}")


@require_GET
def actions(request: HtmxRequest, pk: int) -> HttpResponse:
    """Give the buttons for the run as it is now."""
    return render(request, "runs/_actions.html", {"run": run_of(request, pk)})


@require_GET
def banner(request: HtmxRequest, pk: int) -> HttpResponse:
    """Give what a person is needed for now."""
    run = run_of(request, pk)
    context = {**banner_context(run), **asked_of(run, request)}
    return render(request, "runs/_banner.html", context)


@require_POST
def stop(request: HtmxRequest, pk: int) -> HttpResponse:
    """Ask the run to stop."""
    run = run_of(request, pk)
    cancel_run(run, by=request.user)
    if wants_part(request):
        return render(request, "runs/_actions.html", {"run": run_of(request, pk)})
    return redirect("run-detail", pk)


@require_http_methods(["GET", "POST"])
def go_on(request: HtmxRequest, pk: int) -> HttpResponse:
    """Ask the next question in the conversation of the run; GET gives the form."""
    run = run_of(request, pk)
    form = continuing_of(run, request.user)
    if request.method == "GET":
        context = {"run": run, "continuing": form}
        return render(request, "runs/_continue.html", context)
    if not form.may:
        raise Http404
    text = request.POST.get("input", "")
    if not text.strip():
        return continued(request, run, replace(form, error="Write a question."))
    try:
        new = start_run(
            run.agent,
            by=request.user,
            inputs=next_inputs(run, text),
            conversation=run.conversation,
            draft=run.version_id is None,
            is_test=run.is_test,
        )
    except RunsError as refused:
        return continued(request, run, replace(form, text=text, error=str(refused)))
    return redirect("run-detail", new.pk)


def continued(request: HtmxRequest, run: Run, form: Continuing) -> HttpResponse:
    """Show the page again with what was typed and what is wrong with it."""
    context = page_context(run, {"step": "0"})
    context["continuing"] = form
    return render(request, "runs/detail.html", context)


@require_GET
def download_answer(request: HtmxRequest, pk: int) -> HttpResponse:
    """Give the answer as a file: Markdown, or JSON where it is no text."""
    run = run_of(request, pk)
    if run.answer is None:
        raise Http404
    if isinstance(run.answer, str):
        return attachment(run.answer, f"run-{pk}.md", "text/markdown; charset=utf-8")
    text = json.dumps(run.answer, ensure_ascii=False, indent=2)
    return attachment(text, f"run-{pk}.json", "application/json")


@require_GET
def raw(request: HtmxRequest, pk: int, number: int, what: str) -> HttpResponse:
    """Give one text of a step whole, as a file."""
    run = run_of(request, pk)
    place = place_of(run, number)
    if place is None:
        raise Http404
    if (found := raw_text(run, place, what)) is None:
        raise Http404
    name = f"run-{pk}-step-{number}-{what}.{found.kind}"
    return attachment(found.text, name, KINDS[found.kind])


@require_GET
def live(request: HttpRequest, pk: int) -> HttpResponse:
    """Name the address of the live stream; under ASGI it never comes here."""
    raise Http404


def run_of(request: HtmxRequest, pk: int) -> Run:
    """Return the run, where the person may see it."""
    return get_object_or_404(loaded(Run.objects.visible_to(request.user)), pk=pk)


def asked_of(run: Run, request: HtmxRequest) -> dict[str, Any]:
    """Return what the run asks this person, and what is allowed for all of it."""
    return {
        "questions": questions_of_run(run, request.user),
        "allowances": allowances_of(run),
    }


def banner_context(run: Run) -> dict[str, Any]:
    """Return what the banner shows."""
    state = state_of(run, timeline_of(run))
    return {**context_of(state), "banner": banner_of(state)}


def attachment(text: str, name: str, kind: str) -> HttpResponse:
    """Return `text` as a download."""
    response = HttpResponse(text.encode("utf-8", "replace"), content_type=kind)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
