"""Add runs to an annotation queue: one, many from the list, or an experiment's."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext_lazy
from django.views.decorators.http import require_http_methods

from runs.forms.annotation.add_runs import QueueRunsForm
from runs.htmx import HtmxRequest
from runs.models import Experiment, Run
from runs.models.runs import FINISHED_STATUSES
from runs.services.annotation.queued_runs import QueuedRuns, add_runs_to_queue
from runs.views.run_list.selected_runs import (
    UNFINISHED,
    load_selected_runs,
    report_count,
)
from runs.whole_number import parse_whole_number

ADDED = ngettext_lazy("%(count)s run added.", "%(count)s runs added.", "count")
KNOWN = ngettext_lazy(
    "%(count)s run was in the queue already.",
    "%(count)s runs were in the queue already.",
    "count",
)


@require_http_methods(["GET", "POST"])
def queue_add(request: HtmxRequest) -> HttpResponse:
    """Offer the queues for the runs in the query, or an experiment; POST adds them."""
    given = request.POST if request.method == "POST" else request.GET
    experiment = find_experiment(request, given.get("experiment", ""))
    runs = (
        load_experiment_runs(request, experiment)
        if experiment
        else load_selected_runs(request)
    )
    form = QueueRunsForm(request.user, request.POST or None)
    if request.method == "POST" and not runs:
        messages.error(request, _("Select runs in the list first."))
    elif form.is_valid():
        queue = form.cleaned_data["queue"]
        report_added(request, add_runs_to_queue(queue, runs, by=request.user))
        return redirect("queue-detail", pk=queue.pk)
    context = {"form": form, "runs": runs, "experiment": experiment}
    return render(request, "queues/add.html", context)


def find_experiment(request: HtmxRequest, number: str) -> Experiment | None:
    """Return the experiment with that number, if the user sees it."""
    rows = Experiment.objects.visible_to(request.user)
    return rows.filter(pk=parse_whole_number(number) or 0).first()


def load_experiment_runs(request: HtmxRequest, experiment: Experiment) -> list[Run]:
    """Return all ended runs of the experiment that the user sees."""
    runs = Run.objects.visible_to(request.user).filter(
        experiment_run__experiment=experiment, status__in=FINISHED_STATUSES
    )
    return list(runs.only("status").order_by("pk"))


def report_added(request: HtmxRequest, result: QueuedRuns) -> None:
    """Say how many runs were added, and why the others were not."""
    report_count(request, messages.SUCCESS, ADDED, result.added)
    report_count(request, messages.INFO, KNOWN, result.known)
    report_count(request, messages.ERROR, UNFINISHED, result.unfinished)
