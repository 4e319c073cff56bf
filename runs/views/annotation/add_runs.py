"""Add runs to an annotation queue: one from its page, or many from the list."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext_lazy
from django.views.decorators.http import require_http_methods

from runs.forms.annotation.add_runs import QueueRunsForm
from runs.htmx import HtmxRequest
from runs.services.annotation.queued_runs import QueuedRuns, add_runs_to_queue
from runs.views.run_list.selected_runs import (
    UNFINISHED,
    load_given_runs,
    report_count,
)

ADDED = ngettext_lazy("%(count)s run added.", "%(count)s runs added.", "count")
KNOWN = ngettext_lazy(
    "%(count)s run was in the queue already.",
    "%(count)s runs were in the queue already.",
    "count",
)


@require_http_methods(["GET", "POST"])
def queue_add(request: HtmxRequest) -> HttpResponse:
    """Offer the queues for the runs in the query; POST adds them."""
    runs = load_given_runs(request)
    form = QueueRunsForm(request.user, request.POST or None)
    if request.method == "POST" and not runs:
        messages.error(request, _("Select runs in the list first."))
    elif form.is_valid():
        queue = form.cleaned_data["queue"]
        report_added(request, add_runs_to_queue(queue, runs, by=request.user))
        return redirect("queue-detail", pk=queue.pk)
    return render(request, "queues/add.html", {"form": form, "runs": runs})


def report_added(request: HtmxRequest, result: QueuedRuns) -> None:
    """Say how many runs were added, and why the others were not."""
    report_count(request, messages.SUCCESS, ADDED, result.added)
    report_count(request, messages.INFO, KNOWN, result.known)
    report_count(request, messages.ERROR, UNFINISHED, result.unfinished)
