"""Create an experiment: first the dataset and the agent, then the rest."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from runs.forms.experiments.experiment import (
    DRAFT,
    FORMER,
    PROMPT_AND_PARAMETERS,
    ExperimentForm,
    ExperimentSubjectForm,
)
from runs.forms.json_object import dump_json_object
from runs.htmx import HtmxRequest
from runs.models import Agent, Dataset, Evaluator, Experiment
from runs.services.errors import FieldsRefused, RunsError
from runs.services.experiments.changes import CandidateChanges
from runs.services.experiments.create import (
    CandidateChoice,
    create_experiment,
    name_experiment,
)
from runs.services.experiments.repeat import list_newest_revisions, rebuild_choice
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
    form = ExperimentForm(
        request.user,
        agent,
        request.POST or None,
        initial=list_former_values(former, agent) if former else None,
        former=find_former_changes(former, agent) if former else None,
    )
    if form.is_valid():
        try:
            experiment = start_experiment(request, dataset, form)
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
        "changed_open": any(
            form[name].value() or form[name].errors
            for name in ("model", *PROMPT_AND_PARAMETERS)
            if name in form.fields
        ),
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


def list_former_values(former: Experiment, agent: Agent) -> dict[str, Any]:
    """Return what the form begins with, to run `former` again; drafts as they are."""
    choices = rebuild_choices(former, agent)
    changed = next((one for one in choices if one.changes), CandidateChoice(agent))
    changes, parameters = changed.changes, dict(changed.changes.parameters)
    usual_name = name_experiment(former.dataset, former.dataset_version)
    return {
        "name": "" if former.name == usual_name else former.name,
        "candidates": [name_choice(one) for one in choices if not one.changes],
        "base": name_choice(changed) if changes else "",
        "model": changes.model,
        "instructions": changes.instructions,
        "prompt": FORMER if changes.prompt_text else "",
        "temperature": parameters.pop("temperature", None),
        "max_tokens": parameters.pop("max_tokens", None),
        "more": dump_json_object(parameters or None),
        "evaluators": list(former.evaluators.values_list("evaluator", flat=True)),
        "tool_mode": former.tool_mode,
        "repetitions": former.repetitions,
        "concurrency": former.concurrency,
        "budget": former.budget,
    }


def find_former_changes(former: Experiment, agent: Agent) -> CandidateChanges | None:
    """Return the changes that the form begins with."""
    choices = rebuild_choices(former, agent)
    return next((one.changes for one in choices if one.changes), None)


def rebuild_choices(former: Experiment, agent: Agent) -> list[CandidateChoice]:
    candidates = former.candidates.select_related("agent", "version__spec")
    return [rebuild_choice(one) for one in candidates if one.agent_id == agent.pk]


def name_choice(choice: CandidateChoice) -> str:
    """Return the value of the form for a version or the draft."""
    return str(choice.version.number) if choice.version else DRAFT


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
