"""The page that resumes a run with new limits."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from runs.forms.runs.limits import LimitsForm
from runs.htmx import HtmxRequest
from runs.models import Run
from runs.services.errors import RunsError
from runs.services.runs.resume import resume_run
from runs.views.run.banner import ADVICE, propose_resume_limits
from runs.views.run.context import select_page_relations
from runs.views.run.rows import get_next_row_number
from runs.views.run.state import load_run_state
from runs.views.run.timeline import load_timeline


@require_http_methods(["GET", "POST"])
def run_resume(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the limits of the resumed run; POST resumes it."""
    run = get_object_or_404(
        select_page_relations(Run.objects.visible_to(request.user)), pk=pk
    )
    if not run.can_resume:
        text = _("Only a run that failed or reached a limit can be resumed.")
        if run.parent_step_id is not None:
            text = _("Sub-agent runs cannot be resumed: the calling run has continued.")
        messages.error(request, text)
        return redirect("run-detail", pk)
    state = load_run_state(run, load_timeline(run))
    typed = request.POST if request.method == "POST" else None
    proposed = propose_resume_limits(run, state.limits)
    form = LimitsForm(state.limits, typed, initial=proposed)
    if form.is_valid():
        try:
            resume_run(run, by=request.user, limits=form.changed_options())
        except RunsError as refused:
            form.add_error(None, str(refused))
        else:
            return redirect("run-detail", pk)
    context = {
        "run": run,
        "state": state,
        "form": form,
        "advice": ADVICE.get(run.error_code, ""),
        "next_number": get_next_row_number(run),
    }
    return render(request, "runs/resume.html", context)
