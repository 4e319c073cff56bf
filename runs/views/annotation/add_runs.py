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
    MAX_GIVEN_RUNS,
    UNFINISHED,
    load_given_runs,
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
    """Offer the queues for the runs in the query; POST adds them."""
    runs = load_given_runs(request) or load_experiment_runs(request)
    form = QueueRunsForm(request.user, request.POST or None)
    if request.method == "POST" and not runs:
        messages.error(request, _("Select runs in the list first."))
    elif form.is_valid():
        queue = form.cleaned_data["queue"]
        report_added(request, add_runs_to_queue(queue, runs, by=request.user))
        return redirect("queue-detail", pk=queue.pk)
    return render(request, "queues/add.html", {"form": form, "runs": runs})


def load_experiment_runs(request: HtmxRequest) -> list[Run]:
    """Return the ended runs of the experiment in the query that the user sees.

    The first examples come first; the note says if there are more runs than fit.
    """
    number = parse_whole_number(request.GET.get("experiment", "")) or 0
    seen = Experiment.objects.visible_to(request.user).filter(pk=number)
    runs = Run.objects.visible_to(request.user).filter(
        experiment_run__experiment__in=seen, status__in=FINISHED_STATUSES
    )
    found = list(
        runs.select_related("agent").order_by("experiment_run__place")[
            : MAX_GIVEN_RUNS + 1
        ]
    )
    if len(found) > MAX_GIVEN_RUNS:
        messages.info(
            request,
            _("Only the first %(count)d runs of the experiment are listed.")
            % {"count": MAX_GIVEN_RUNS},
        )
    return found[:MAX_GIVEN_RUNS]


def report_added(request: HtmxRequest, result: QueuedRuns) -> None:
    """Say how many runs were added, and why the others were not."""
    report_count(request, messages.SUCCESS, ADDED, result.added)
    report_count(request, messages.INFO, KNOWN, result.known)
    report_count(request, messages.ERROR, UNFINISHED, result.unfinished)
