"""Add a run to a dataset."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from runs.forms.datasets.run_example import RunExampleForm
from runs.htmx import HtmxRequest
from runs.models import Run
from runs.services.datasets.from_run import add_run_to_dataset, build_content_of_run
from runs.services.errors import DatasetFull
from runs.views.datasets.example import get_row_url


@require_http_methods(["GET", "POST"])
def run_dataset(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the example that the run would be; POST adds it."""
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    form = RunExampleForm(build_content_of_run(run), request.user, request.POST or None)
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
    return render(request, "datasets/add_run.html", {"run": run, "form": form})
