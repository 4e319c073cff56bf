"""Create an experiment; workers create and start its runs."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from runs.models import (
    Agent,
    AgentVersion,
    Dataset,
    EvaluatorRevision,
    Experiment,
    ExperimentCandidate,
)
from runs.services.errors import FieldError, InputsRefused, NotAllowed, RunsError
from runs.services.experiments.score_cells import is_comparing
from runs.services.runs.start import (
    FrozenAgent,
    freeze_newest_version,
    require_agent_access,
)
from runs.services.spec.freeze import use_model, validate_spec, variables_of_spec
from runs.store.specs import get_or_create_spec, load_spec
from tools.audit.write import write_entry

MAX_CANDIDATES = 6
MAX_REPETITIONS = 20
MAX_CONCURRENCY = 50
MAX_RUNS = 100_000
MAX_NAMED_EXAMPLES = 5


class ExperimentRefused(RunsError):
    """The experiment cannot be created; nothing was started."""


@dataclass(frozen=True)
class CandidateChoice:
    """A version of an agent or its draft, perhaps with another model."""

    agent: Agent
    version: AgentVersion | None = None
    model: str = ""
    """Of the same provider; empty for the agent's own."""


@dataclass(frozen=True)
class ExperimentPlan:
    """How an experiment is run."""

    tool_mode: str = Experiment.ToolMode.HOLD_BACK
    repetitions: int = 1
    concurrency: int = 10
    budget: Decimal | None = None


def name_experiment(dataset: Dataset, version: int) -> str:
    """Return the name of an experiment that was given none."""
    return f"{dataset.name} v{version}"[:120]


def create_experiment(
    dataset: Dataset,
    choices: Sequence[CandidateChoice],
    revisions: Sequence[EvaluatorRevision],
    *,
    by: User,
    plan: ExperimentPlan,
    name: str = "",
) -> Experiment:
    """Create a running experiment with the newest version of the dataset.

    Raises `ExperimentRefused`, `SpecRefused`, `InputsRefused` or `NotAllowed`; nothing
    is stored then.
    """
    if not dataset.version:
        raise ExperimentRefused(_("Save a version of the dataset first."))
    if not choices or len(choices) > MAX_CANDIDATES:
        raise ExperimentRefused(
            _("Select 1 to %(limit)d candidates.") % {"limit": MAX_CANDIDATES}
        )
    if not revisions:
        raise ExperimentRefused(_("Select at least one evaluator."))
    comparing = [one for one in revisions if is_comparing(one)]
    if comparing and len(choices) < 2:
        raise ExperimentRefused(
            _(
                '"%(name)s" compares answers with those of the baseline. Select a '
                "second candidate."
            )
            % {"name": comparing[0].evaluator.name}
        )
    examples = dataset.examples.in_version(dataset.version)
    frozen = [freeze_candidate(choice, by=by) for choice in choices]
    check_examples(dataset, frozen)
    total = examples.count() * len(choices) * plan.repetitions
    if total > MAX_RUNS:
        raise ExperimentRefused(
            _(
                "The experiment would have %(count)d runs, at most %(limit)d "
                "are allowed."
            )
            % {"count": total, "limit": MAX_RUNS}
        )
    several = len({choice.agent.pk for choice in choices}) > 1
    with transaction.atomic():
        experiment = Experiment.objects.create(
            owner=by,
            name=name or name_experiment(dataset, dataset.version),
            dataset=dataset,
            dataset_version=dataset.version,
            tool_mode=plan.tool_mode,
            repetitions=plan.repetitions,
            concurrency=plan.concurrency,
            budget=plan.budget,
            seed=random.SystemRandom().randrange(1, 2**31),
            total=total,
        )
        experiment.evaluators.set(revisions)
        for position, (choice, one) in enumerate(zip(choices, frozen, strict=True)):
            ExperimentCandidate.objects.create(
                experiment=experiment,
                position=position,
                label=label_candidate(choice, several=several),
                agent=choice.agent,
                version=one.version,
                spec=one.row,
            )
        write_entry("made", "experiment", experiment.name, number=experiment.pk, by=by)
    return experiment


def freeze_candidate(choice: CandidateChoice, *, by: User) -> FrozenAgent:
    """Return what the runs of a candidate run."""
    require_agent_access(choice.agent, by=by)
    if choice.version is not None:
        spec = load_spec(choice.version.spec)
        frozen = FrozenAgent(spec, choice.version.spec, choice.version)
    else:
        require_draft_access(choice.agent, by=by)
        frozen = freeze_newest_version(choice.agent, draft=True)
    if not choice.model:
        return frozen
    model = frozen.spec.model.model_copy(update={"model": choice.model})
    spec = use_model(frozen.spec, model)
    validate_spec(spec)
    return FrozenAgent(spec, get_or_create_spec(spec), frozen.version)


def require_draft_access(agent: Agent, *, by: User) -> None:
    """Raise `NotAllowed` if `by` gets only published versions of the agent."""
    if not agent.versions.exists():
        return
    if not Agent.objects.editable_by(by).filter(pk=agent.pk).exists():
        raise NotAllowed(
            _('Only its owner can run the draft of "%(name)s". Select a version.')
            % {"name": agent.name}
        )


def label_candidate(choice: CandidateChoice, *, several: bool) -> str:
    """Return the name of a candidate, with its agent if there are several."""
    words = (
        _("Version %(number)d") % {"number": choice.version.number}
        if choice.version
        else _("Draft")
    )
    parts = [choice.agent.name] if several else []
    return ", ".join([*parts, words, *filter(None, [choice.model])])[:200]


def check_examples(dataset: Dataset, frozen: Sequence[FrozenAgent]) -> None:
    """Raise `InputsRefused` if examples lack a variable of a candidate."""
    wanted = {name for one in frozen for name in variables_of_spec(one.spec)}
    rows = dataset.examples.in_version(dataset.version).order_by("number")
    missing: dict[str, list[int]] = {}
    for number, inputs in rows.values_list("number", "inputs").iterator():
        for name in wanted - inputs.keys():
            missing.setdefault(name, []).append(number)
    errors = [
        FieldError(
            name,
            _("Examples without a value for %(name)s: %(numbers)s.")
            % {"name": name, "numbers": name_numbers(numbers)},
        )
        for name, numbers in missing.items()
    ]
    if errors:
        raise InputsRefused(errors)


def name_numbers(numbers: list[int]) -> str:
    """Return the first numbers, and how many more there are."""
    named = ", ".join(map(str, numbers[:MAX_NAMED_EXAMPLES]))
    return named if len(numbers) <= MAX_NAMED_EXAMPLES else f"{named}, …"
