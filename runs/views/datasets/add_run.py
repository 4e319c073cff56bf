"""Add runs to a dataset: one with its values, or many from the list."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext_lazy
from django.views.decorators.http import require_http_methods

from runs.forms.datasets.receiver import RunsReceiverForm
from runs.forms.datasets.run_example import RunExampleForm
from runs.htmx import HtmxRequest
from runs.models import Run
from runs.services.datasets.from_run import (
    AddedRuns,
    add_run_to_dataset,
    add_runs_to_dataset,
    build_content_of_run,
)
from runs.services.errors import DatasetFull
from runs.views.datasets.example import get_row_url
from runs.views.run_list.selected_runs import (
    UNFINISHED,
    load_selected_runs,
    report_count,
)
from runs.whole_number import parse_whole_number

ADDED = ngettext_lazy(
    "%(count)s run added. Save the version to use it.",
    "%(count)s runs added. Save the version to use them.",
    "count",
)
KNOWN = ngettext_lazy(
    "%(count)s run not added: the dataset has its input.",
    "%(count)s runs not added: the dataset has their inputs.",
    "count",
)
WITHOUT_INPUT = ngettext_lazy(
    "%(count)s run not added: it has no input.",
    "%(count)s runs not added: they have no input.",
    "count",
)


@require_http_methods(["GET", "POST"])
def run_dataset(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the example that the run would be, perhaps up to a step; POST adds it."""
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    row = parse_whole_number(request.GET.get("step", ""))
    content = build_content_of_run(run, row=row)
    form = RunExampleForm(run, content, request.user, request.POST or None)
    if form.is_valid():
        try:
            example = add_run_to_dataset(
                run,
                form.cleaned_data["dataset"],
                form.content,
                by=request.user,
                updates=form.cleaned_data["same"] == "update",
                new_name=form.cleaned_data["name"],
            )
        except DatasetFull as refused:
            form.add_service_error(refused)
        else:
            messages.success(
                request,
                _(
                    "Run %(run)d is example %(number)d of %(name)s. Save the version "
                    "to use it."
                )
                % {"run": pk, "number": example.number, "name": example.dataset},
            )
            return redirect(get_row_url(example.dataset, example.number))
    context = {"run": run, "form": form, "row": row}
    return render(request, "datasets/add_run.html", context)


@require_http_methods(["GET", "POST"])
def dataset_add_runs(request: HtmxRequest) -> HttpResponse:
    """Offer the datasets for the runs in the query; POST adds them."""
    runs = load_selected_runs(request)
    form = RunsReceiverForm(request.user, request.POST or None)
    if request.method == "POST" and not runs:
        messages.error(request, _("Select runs in the list first."))
    elif form.is_valid():
        given = form.cleaned_data
        try:
            result = add_runs_to_dataset(
                runs, given["dataset"], by=request.user, new_name=given["name"]
            )
        except DatasetFull as refused:
            form.add_error(None, str(refused))
        else:
            report_added_runs(request, result)
            return redirect("dataset-detail", pk=result.dataset.pk)
    return render(request, "datasets/add_runs.html", {"form": form, "runs": runs})


def report_added_runs(request: HtmxRequest, result: AddedRuns) -> None:
    """Say how many runs were added, and why the others were not."""
    report_count(request, messages.SUCCESS, ADDED, result.added)
    report_count(request, messages.INFO, KNOWN, result.known)
    report_count(request, messages.ERROR, UNFINISHED, result.unfinished)
    report_count(request, messages.ERROR, WITHOUT_INPUT, result.without_input)
