"""Create an experiment: first the dataset and the agent, then the rest."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from runs.forms.experiments.experiment import ExperimentForm, ExperimentSubjectForm
from runs.htmx import HtmxRequest
from runs.models import Dataset, Evaluator, Experiment
from runs.services.errors import RunsError
from runs.services.experiments.create import create_experiment
from runs.services.experiments.repeat import list_newest_revisions


@require_http_methods(["GET", "POST"])
def experiment_create(request: HtmxRequest) -> HttpResponse:
    """Offer datasets and agents; with both in the query, show the form."""
    is_chosen = "dataset" in request.GET and "agent" in request.GET
    subject = ExperimentSubjectForm(
        request.user,
        request.GET if is_chosen else None,
        initial={name: request.GET.get(name) for name in ("dataset", "agent")},
    )
    if not is_chosen or not subject.is_valid():
        return render(request, "experiments/subject.html", {"form": subject})
    dataset, agent = subject.cleaned_data["dataset"], subject.cleaned_data["agent"]
    form = ExperimentForm(request.user, agent, request.POST or None)
    if form.is_valid():
        try:
            experiment = start_experiment(request, dataset, form)
        except RunsError as refused:
            form.add_error(None, str(refused))
        else:
            messages.success(request, describe_start(experiment))
            return redirect("experiment-detail", pk=experiment.pk)
    version = dataset.versions.filter(number=dataset.version).first()
    context = {
        "form": form,
        "dataset": dataset,
        "agent": agent,
        "example_count": version.example_count if version else 0,
        "has_evaluators": Evaluator.objects.usable_by(request.user).exists(),
    }
    return render(request, "experiments/form.html", context)


def start_experiment(
    request: HtmxRequest, dataset: Dataset, form: ExperimentForm
) -> Experiment:
    """Create the experiment of a valid form; raise `RunsError`."""
    return create_experiment(
        dataset,
        form.list_choices(),
        list_newest_revisions(form.cleaned_data["evaluators"]),
        by=request.user,
        plan=form.build_plan(),
        name=form.cleaned_data["name"],
    )


def describe_start(experiment: Experiment) -> str:
    """Say how many runs there will be."""
    return ngettext(
        "Experiment created. A worker starts its %(count)s run.",
        "Experiment created. Workers start its %(count)s runs.",
        experiment.total,
    ) % {"count": experiment.total} + (
        "" if experiment.budget is None else " " + _("It stops at its budget.")
    )
