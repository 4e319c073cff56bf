"""The parts of a turn that depend on who looks: what it asks a person."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from runs.htmx import HtmxRequest, wants_part
from runs.models import Decision, Run
from runs.services.answer_decision import approve_step, reject_step
from runs.services.errors import RunsError
from runs.whole_number import whole_number


@require_http_methods(["GET", "POST"])
def turn_asks(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show what a run asks; POST takes a yes or a no to one of its calls."""
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    error = ""
    if request.method == "POST":
        try:
            answer(request, run)
        except RunsError as refused:
            error = str(refused)
        if not wants_part(request):
            return redirect("run-detail", pk=pk)
    asks = Decision.objects.filter(step__run=run, answer="").select_related("step")
    context = {"run": run, "asks": asks, "error": error}
    return render(request, "turns/_asks.html", context)


def answer(request: HtmxRequest, run: Run) -> None:
    """Hand the answer to its service."""
    number = whole_number(request.POST.get("decision", ""))
    decision = get_object_or_404(Decision, pk=number, step__run=run)
    word, shown = request.POST.get("answer", ""), request.POST.get("shown", "")
    if word == "approve":
        approve_step(decision, by=request.user, shown=shown)
    elif word == "reject":
        reject_step(decision, by=request.user, shown=shown)


@require_GET
def turn_live(request: HttpRequest, key: str) -> HttpResponse:
    """Name the address of the live stream; under ASGI it never comes here."""
    raise Http404
