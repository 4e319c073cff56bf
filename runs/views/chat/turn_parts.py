"""The parts of a turn that depend on the viewer: its open approvals."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from runs.htmx import HtmxRequest, wants_part
from runs.models import Decision, Run
from runs.services.approvals.answer import approve_step, reject_step
from runs.services.errors import ArgumentsRefused, FieldError, RunsError
from runs.views.approvals.details import (
    build_decision_detail,
    parse_edited_input,
    select_decision_relations,
)
from runs.views.approvals.refused import keep_refused_answer, show_typed_answers
from runs.whole_number import parse_whole_number


@require_http_methods(["GET", "POST"])
def turn_asks(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the open approvals of a run; POST approves or rejects one of them."""
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    error = ""
    refusals: dict[int, list[FieldError]] = {}
    if request.method == "POST":
        number = parse_whole_number(request.POST.get("decision", ""))
        decision = get_object_or_404(Decision, pk=number, step__run=run)
        try:
            submit_turn_answer(request, decision)
        except RunsError as refused:
            if not isinstance(refused, ArgumentsRefused):
                error = str(refused)
            elif wants_part(request):
                refusals[decision.pk] = refused.errors
            else:
                keep_refused_answer(request, decision.pk, refused)
        if not wants_part(request):
            if error:
                messages.error(request, error)
            return redirect("run-detail", pk=pk)
    rows = Decision.objects.filter(step__run=run, answer="")
    questions = [
        build_decision_detail(one, request.user)
        for one in select_decision_relations(rows)
    ]
    context = {
        "run": run,
        "questions": show_typed_answers(questions, request.POST, refusals),
        "error": error,
    }
    return render(request, "turns/_asks.html", context)


def submit_turn_answer(request: HtmxRequest, decision: Decision) -> None:
    word, shown = request.POST.get("answer", ""), request.POST.get("shown", "")
    if word == "approve":
        edited = parse_edited_input(decision, request.POST)
        approve_step(decision, by=request.user, edited_input=edited, shown=shown)
    elif word == "reject":
        reject_step(decision, by=request.user, shown=shown)


@require_GET
def turn_live(request: HttpRequest, key: str) -> HttpResponse:
    """Give the live stream a URL; the ASGI app answers it."""
    raise Http404
