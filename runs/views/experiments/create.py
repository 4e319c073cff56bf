"""Create an experiment: first the dataset and the agent, then the rest."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from runs.forms.experiments.experiment import ExperimentForm, ExperimentSubjectForm
from runs.htmx import HtmxRequest
from runs.models import Agent, Dataset, Evaluator, Experiment
from runs.services.errors import FieldsRefused, RunsError
from runs.services.experiments.create import (
    MAX_CANDIDATES,
    CandidateChoice,
    SettingsRefused,
    create_experiment,
    name_experiment,
)
from runs.services.experiments.repeat import list_newest_revisions, rebuild_choice
from runs.ui.format import number
from runs.whole_number import parse_whole_number


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
    former = find_former(request, dataset, agent)
    choices = rebuild_choices(former) if former else []
    form = ExperimentForm(
        request.user,
        agent,
        request.POST or None,
        initial=list_former_values(former) if former else None,
        former=choices,
    )
    if {"add", "remove"} & request.POST.keys():
        form = change_candidate_rows(form, request, choices)
    elif form.is_valid():
        try:
            experiment = create_experiment_from_form(request, dataset, form)
        except SettingsRefused as refused:
            for error in refused.errors:
                form.add_error(error.field, error.message)
        except FieldsRefused as refused:
            form.add_candidate_errors(refused.errors)
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
        "changed_open": "add" in request.POST or any(r.is_filled for r in form.rows),
        "may_add": form.offer.has_draft and len(form.rows) < MAX_CANDIDATES,
        "has_evaluators": Evaluator.objects.usable_by(request.user).exists(),
    }
    return render(request, "experiments/form.html", context)


def find_former(
    request: HtmxRequest, dataset: Dataset, agent: Agent
) -> Experiment | None:
    """Return the experiment in the query, if it is one of this dataset and agent."""
    number = parse_whole_number(request.GET.get("again", ""))
    found = Experiment.objects.visible_to(request.user).filter(
        pk=number or 0, dataset=dataset
    )
    return found.filter(candidates__agent=agent).first()


def list_former_values(former: Experiment) -> dict[str, Any]:
    """Return what the form begins with, to run `former` again."""
    usual_name = name_experiment(former.dataset, former.dataset_version)
    return {
        "name": "" if former.name == usual_name else former.name,
        "evaluators": list(former.evaluators.values_list("evaluator", flat=True)),
        "tool_mode": former.tool_mode,
        "repetitions": former.repetitions,
        "concurrency": former.concurrency,
        "budget": former.budget,
    }


def rebuild_choices(former: Experiment) -> list[CandidateChoice]:
    candidates = former.candidates.select_related("agent", "version__spec")
    return [rebuild_choice(one) for one in candidates]


def change_candidate_rows(
    form: ExperimentForm, request: HtmxRequest, former: list[CandidateChoice]
) -> ExperimentForm:
    """Return the form with one more or one less candidate with changes, unchecked."""
    rows = [row.read_values() for row in form.rows]
    removed = parse_whole_number(request.POST.get("remove", ""))
    if removed is not None and removed < len(rows):
        del rows[removed]
    if "add" in request.POST:
        rows.append({})
    return ExperimentForm(
        request.user,
        form.agent,
        initial=form.read_values(),
        former=former,
        rows=rows[:MAX_CANDIDATES],
    )


def create_experiment_from_form(
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
    return ngettext(
        "Experiment created. A worker starts its %(count)s run.",
        "Experiment created. Workers start its %(count)s runs.",
        experiment.total,
    ) % {"count": number(experiment.total)} + (
        "" if experiment.budget is None else " " + _("It stops at its budget.")
    )
