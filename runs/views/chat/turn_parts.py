"""The parts of a turn that depend on the viewer: its open approvals."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from runs.htmx import HtmxRequest, wants_part
from runs.models import Decision, Run
from runs.services.approvals.answer import approve_step, reject_step
from runs.services.errors import RunsError
from runs.whole_number import parse_whole_number


@require_http_methods(["GET", "POST"])
def turn_asks(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the open approvals of a run; POST approves or rejects one of them."""
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    error = ""
    if request.method == "POST":
        try:
            submit_turn_answer(request, run)
        except RunsError as refused:
            error = str(refused)
        if not wants_part(request):
            return redirect("run-detail", pk=pk)
    asks = Decision.objects.filter(step__run=run, answer="").select_related("step")
    context = {"run": run, "asks": asks, "error": error}
    return render(request, "turns/_asks.html", context)


def submit_turn_answer(request: HtmxRequest, run: Run) -> None:
    number = parse_whole_number(request.POST.get("decision", ""))
    decision = get_object_or_404(Decision, pk=number, step__run=run)
    word, shown = request.POST.get("answer", ""), request.POST.get("shown", "")
    if word == "approve":
        approve_step(decision, by=request.user, shown=shown)
    elif word == "reject":
        reject_step(decision, by=request.user, shown=shown)


@require_GET
def turn_live(request: HttpRequest, key: str) -> HttpResponse:
    """Give the live stream a URL; the ASGI app answers it."""
    raise Http404
