"""Create an experiment; workers create and start its runs."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils.text import Truncator
from django.utils.translation import gettext as _

from runs.models import (
    Agent,
    AgentVersion,
    Dataset,
    EvaluatorRevision,
    Example,
    Experiment,
    ExperimentCandidate,
    Run,
)
from runs.services.errors import (
    FieldError,
    FieldsRefused,
    InputsRefused,
    NotAllowed,
    RunsError,
    SpecRefused,
)
from runs.services.evaluation.judge_requests import (
    find_judge_problem,
    get_judge_provider,
)
from runs.services.experiments.changes import (
    CandidateChanges,
    apply_candidate_changes,
    list_change_labels,
)
from runs.services.experiments.score_cells import is_comparing
from runs.services.runs.called_agents import find_called_specs
from runs.services.runs.start import (
    FrozenAgent,
    freeze_newest_version,
    require_active_agent,
    require_agent_access,
)
from runs.services.spec.freeze import variables_of_spec
from runs.store.specs import get_or_create_spec, load_spec
from tools.audit.write import write_entry

MAX_CANDIDATES = 6
MAX_REPETITIONS = 20
MAX_CONCURRENCY = 50
MAX_RUNS = 100_000
MAX_NAMED_EXAMPLES = 5
MAX_LABEL_LENGTH = 200


class ExperimentRefused(RunsError):
    """The experiment cannot be created; nothing was started."""


class SettingsRefused(FieldsRefused):
    """The evaluators or the tool mode cannot be used; nothing was started."""


@dataclass(frozen=True)
class CandidateChoice:
    """A version of an agent or its draft, perhaps changed."""

    agent: Agent
    version: AgentVersion | None = None
    changes: CandidateChanges = CandidateChanges()


@dataclass(frozen=True)
class ExperimentPlan:
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

    Raises `ExperimentRefused`, `SettingsRefused`, `SpecRefused`, `InputsRefused` or
    `NotAllowed`; nothing is stored then. Errors of a candidate are in fields such as
    `candidates.1.instructions`.
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
    check_judges(revisions)
    examples = dataset.examples.in_version(dataset.version)
    if plan.tool_mode == Experiment.ToolMode.REPLAY_STRICT:
        check_recordings(examples, by=by)
    frozen = freeze_candidates(choices, by=by)
    check_examples(dataset, choices, frozen)
    total = examples.count() * len(choices) * plan.repetitions
    if total > MAX_RUNS:
        raise ExperimentRefused(
            _(
                "The experiment would have %(count)d runs, at most %(limit)d "
                "are allowed."
            )
            % {"count": total, "limit": MAX_RUNS}
        )
    labels = label_candidates(choices)
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
                label=labels[position],
                agent=choice.agent,
                version=one.version,
                changes=choice.changes.dump_changed(),
                spec=one.row,
                called_specs=find_called_specs(one.spec, stores=True),
            )
        write_entry("made", "experiment", experiment.name, number=experiment.pk, by=by)
    return experiment


def check_judges(revisions: Sequence[EvaluatorRevision]) -> None:
    """Raise `SettingsRefused` for judges whose owners may not use their providers."""
    errors = [
        FieldError(
            "evaluators",
            _(
                'The judge "%(name)s" asks the provider %(provider)r, which was not '
                "found. Select another one on its page."
            )
            % {"name": one.evaluator.name, "provider": get_judge_provider(one)},
        )
        for one in revisions
        if find_judge_problem(one, owner=one.evaluator.owner)
    ]
    if errors:
        raise SettingsRefused(errors)


def check_recordings(examples: QuerySet[Example], *, by: User) -> None:
    """Raise `SettingsRefused` if `by` may see the source run of no example."""
    recorded = Run.objects.visible_to(by).filter(pk__in=examples.values("source_run"))
    if not recorded.exists():
        problem = _(
            "No example has a source run that you can see, so there is nothing to "
            "replay. Select another mode."
        )
        raise SettingsRefused([FieldError("tool_mode", problem)])


def freeze_candidates(
    choices: Sequence[CandidateChoice], *, by: User
) -> list[FrozenAgent]:
    """Return what the runs of each run; raise `SpecRefused` or `NotAllowed`."""
    frozen = []
    for place, choice in enumerate(choices):
        try:
            frozen.append(freeze_candidate(choice, by=by))
        except SpecRefused as refused:
            raise SpecRefused(
                one._replace(field=f"candidates.{place}.{one.field}")
                for one in refused.errors
            ) from None
    return frozen


def freeze_candidate(choice: CandidateChoice, *, by: User) -> FrozenAgent:
    require_active_agent(choice.agent)
    require_agent_access(choice.agent, by=by)
    if choice.version is not None:
        spec = load_spec(choice.version.spec)
        frozen = FrozenAgent(spec, choice.version.spec, choice.version)
    else:
        require_draft_access(choice.agent, by=by)
        frozen = freeze_newest_version(choice.agent, draft=True)
    if not choice.changes:
        return frozen
    if not may_edit(choice.agent, by):
        raise NotAllowed(
            _(
                'Only its owner can run "%(name)s" with another model, another prompt '
                "or other parameters."
            )
            % {"name": choice.agent.name}
        )
    spec = apply_candidate_changes(frozen.spec, choice.changes)
    return FrozenAgent(spec, get_or_create_spec(spec), frozen.version)


def require_draft_access(agent: Agent, *, by: User) -> None:
    """Raise `NotAllowed` if `by` gets only published versions of the agent."""
    if not agent.versions.exists():
        return
    if not may_edit(agent, by):
        raise NotAllowed(
            _('Only its owner can run the draft of "%(name)s". Select a version.')
            % {"name": agent.name}
        )


def may_edit(agent: Agent, user: User) -> bool:
    return Agent.objects.editable_by(user).filter(pk=agent.pk).exists()


def label_candidates(choices: Sequence[CandidateChoice]) -> list[str]:
    """Return the name of each candidate; equal names of changed ones get numbers."""
    several = len({choice.agent.pk for choice in choices}) > 1
    labels: list[str] = []
    for choice in choices:
        plain = label = label_candidate(choice, several=several)
        number = 1
        while choice.changes and label in labels:
            number += 1
            label = f"{plain[: MAX_LABEL_LENGTH - 4]} ({number})"
        labels.append(label)
    return labels


def label_candidate(choice: CandidateChoice, *, several: bool) -> str:
    """Return the name of a candidate, with its agent if there are several."""
    words = (
        _("Version %(number)d") % {"number": choice.version.number}
        if choice.version
        else _("Draft")
    )
    parts = [choice.agent.name] if several else []
    label = ", ".join([*parts, words, *list_change_labels(choice.changes)])
    return Truncator(label).chars(MAX_LABEL_LENGTH)


def check_examples(
    dataset: Dataset,
    choices: Sequence[CandidateChoice],
    frozen: Sequence[FrozenAgent],
) -> None:
    """Raise `InputsRefused` if examples lack a variable of a candidate."""
    fields: dict[str, str] = {}
    for place, (choice, one) in enumerate(zip(choices, frozen, strict=True)):
        changed = choice.changes.prompt_field
        for name in variables_of_spec(one.spec):
            fields.setdefault(
                name, f"candidates.{place}.{changed}" if changed else name
            )
    rows = dataset.examples.in_version(dataset.version).order_by("number")
    missing: dict[str, list[int]] = {}
    for number, inputs in rows.values_list("number", "inputs").iterator():
        for name in fields.keys() - inputs.keys():
            missing.setdefault(name, []).append(number)
    errors = [
        FieldError(
            fields[name],
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
