"""The page that continues a stopped or failed run, with new limits."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from runs.forms.limits import LimitsForm
from runs.htmx import HtmxRequest
from runs.models import Run
from runs.services.errors import RunsError
from runs.services.resume_run import resume_run
from runs.services.start_run import refuse_stranger
from runs.views.run_banner import ADVICE, limits_to_raise
from runs.views.run_context import loaded
from runs.views.run_rows import next_number
from runs.views.run_state import RunState, state_of
from runs.views.run_times import timeline_of


@require_http_methods(["GET", "POST"])
def resume(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the limits the run would go on with; POST continues it."""
    run = get_object_or_404(loaded(Run.objects.visible_to(request.user)), pk=pk)
    if not run.can_resume:
        told = "Only a stopped or failed run can be resumed."
        if run.parent_step_id is not None:
            told += " The one that has called this agent has gone on."
        messages.error(request, told)
        return redirect("run-detail", pk)
    state = state_of(run, timeline_of(run))
    typed = request.POST if request.method == "POST" else None
    form = LimitsForm(state.limits, typed, initial=proposed(state))
    if form.is_valid():
        try:
            refuse_stranger(run.agent, by=request.user)
            resume_run(run, by=request.user, limits=form.changed())
        except RunsError as refused:
            form.add_error(None, str(refused))
        else:
            return redirect("run-detail", pk)
    context = {
        "run": run,
        "state": state,
        "form": form,
        "advice": ADVICE.get(run.error_code, ""),
        "next_number": next_number(run),
    }
    return render(request, "runs/resume.html", context)


def proposed(state: RunState) -> dict[str, float]:
    """Return twice the limit that stopped the run."""
    return {limit.name: limit.value for limit in limits_to_raise(state)}
