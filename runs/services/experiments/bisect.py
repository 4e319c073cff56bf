"""Find the version of an agent at which an example began to fail.

The search is an experiment with one example, to which a worker adds the next version
as a candidate when the runs of the last one have been scored.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from runs.evaluation.versions.bisection import (
    BisectionState,
    Outcome,
    judge_version,
    search_first_failure,
)
from runs.models import (
    AgentVersion,
    Bisection,
    EvaluatorRevision,
    Experiment,
    ExperimentCandidate,
    ExperimentRun,
)
from runs.services.errors import NotAllowed, RunsError
from runs.services.experiments.create import (
    ExperimentRefused,
    freeze_candidate,
    label_candidate,
)
from runs.services.experiments.repeat import rebuild_choice
from runs.services.experiments.score_cells import is_comparing
from runs.services.runs.called_agents import find_called_specs
from runs.services.runs.start import FrozenAgent, require_agent_access
from runs.store.specs import load_spec
from tools.audit.write import write_entry

State = ExperimentRun.State


class CannotBisect(ExperimentRefused):
    """There is nothing to search for; nothing was started."""


@dataclass(frozen=True)
class BisectionPlan:
    """How the versions are run."""

    repetitions: int = 1
    budget: Decimal | None = None
    tool_mode: str = ""
    """By default that of the experiment with the failing run; see
    `get_default_tool_mode`."""


class ProbedVersion(NamedTuple):
    """A version of the search; `candidate` is null if it was not run."""

    number: int | None
    """Null for a draft."""
    candidate: ExperimentCandidate | None
    outcome: Outcome | None
    """Null if it was not run, or its runs have not been scored yet."""
    cells: list[ExperimentRun]


class BisectionReport(NamedTuple):
    """A search as it is now."""

    versions: list[ProbedVersion]
    """The oldest first; the last one is the candidate that failed."""
    failing: ExperimentCandidate
    state: BisectionState


def start_bisection(
    cell: ExperimentRun, *, by: User, plan: BisectionPlan
) -> Experiment:
    """Create the experiment that searches; raise `CannotBisect` or `NotAllowed`."""
    source, failing = cell.experiment, cell.candidate
    require_agent_access(failing.agent, by=by)
    revisions = list_failed_revisions(cell)
    numbers = list_earlier_versions(failing)
    name = _("Example %(number)d of %(name)s: first failing version") % {
        "number": cell.example.number,
        "name": source.dataset.name,
    }
    with transaction.atomic():
        experiment = Experiment.objects.create(
            owner=by,
            name=name[:120],
            dataset=source.dataset,
            dataset_version=source.dataset_version,
            tool_mode=plan.tool_mode or get_default_tool_mode(source),
            repetitions=plan.repetitions,
            concurrency=source.concurrency,
            budget=plan.budget,
            seed=source.seed,
        )
        experiment.evaluators.set(revisions)
        Bisection.objects.create(
            experiment=experiment,
            source=source,
            example=cell.example,
            versions=numbers,
        )
        frozen = FrozenAgent(load_spec(failing.spec), failing.spec, failing.version)
        create_probe(experiment, cell.example_id, failing.label, failing, frozen)
        write_entry("made", "experiment", experiment.name, number=experiment.pk, by=by)
    return experiment


def get_default_tool_mode(source: Experiment) -> str:
    """Return the mode of the experiment; no search makes all calls unless asked to."""
    is_live = source.tool_mode == Experiment.ToolMode.LIVE
    return Experiment.ToolMode.HOLD_BACK if is_live else source.tool_mode


def list_failed_revisions(cell: ExperimentRun) -> list[EvaluatorRevision]:
    """Return the evaluators that the run did not pass; they judge the versions."""
    if cell.passed is not False:
        raise CannotBisect(
            _("Select a run that an evaluator did not pass: this one has not failed.")
        )
    scores = cell.scores.filter(passed=False, source="evaluator")
    revisions = EvaluatorRevision.objects.filter(pk__in=scores.values("revision"))
    found = [one for one in revisions if not is_comparing(one)]
    if not found:
        raise CannotBisect(
            _(
                "Only comparisons with the baseline failed here, and versions are "
                "judged one by one. Add an evaluator that judges a single answer."
            )
        )
    return found


def list_earlier_versions(failing: ExperimentCandidate) -> list[int]:
    """Return the numbers of the versions before a candidate, the oldest first."""
    rows = AgentVersion.objects.filter(agent=failing.agent_id)
    if failing.version is not None:
        rows = rows.filter(number__lt=failing.version.number)
    numbers = list(rows.order_by("number").values_list("number", flat=True))
    if not numbers:
        raise CannotBisect(
            _("There is no earlier version of %(name)s to run.")
            % {"name": failing.agent.name}
        )
    return numbers


def create_probe(
    experiment: Experiment,
    example: int,
    label: str,
    like: ExperimentCandidate,
    frozen: FrozenAgent,
    *,
    problem: str = "",
) -> None:
    """Add a candidate and its runs; with a problem, they are not started."""
    candidate = ExperimentCandidate.objects.create(
        experiment=experiment,
        position=experiment.candidates.count(),
        label=label,
        agent=like.agent,
        version=frozen.version,
        changes=like.changes,
        spec=frozen.row,
        called_specs={
            **find_called_specs(frozen.spec, stores=True),
            **like.called_specs,
        },
    )
    first = experiment.total
    ExperimentRun.objects.bulk_create(
        ExperimentRun(
            experiment=experiment,
            example_id=example,
            candidate=candidate,
            repetition=repetition,
            place=first + repetition,
            state=State.REFUSED if problem else State.WAITING,
            problem=problem,
        )
        for repetition in range(experiment.repetitions)
    )
    experiment.total = experiment.created_runs = first + experiment.repetitions
    experiment.save(update_fields=["total", "created_runs"])


def load_bisection(experiment: Experiment) -> BisectionReport:
    return load_bisections([experiment])[experiment.pk]


def load_bisections(experiments: Sequence[Experiment]) -> dict[int, BisectionReport]:
    """Return what each search has found so far, by the key of its experiment."""
    candidates: dict[int, list[ExperimentCandidate]] = defaultdict(list)
    rows = ExperimentCandidate.objects.filter(experiment__in=experiments)
    for one in rows.select_related("agent", "version").order_by("position"):
        candidates[one.experiment_id].append(one)
    cells: dict[int, list[ExperimentRun]] = defaultdict(list)
    runs = ExperimentRun.objects.filter(experiment__in=experiments)
    for cell in runs.order_by("repetition"):
        cells[cell.candidate_id].append(cell)
    return {
        one.pk: build_report(one.bisection, candidates[one.pk], cells)
        for one in experiments
    }


def build_report(
    bisection: Bisection,
    candidates: Sequence[ExperimentCandidate],
    cells: dict[int, list[ExperimentRun]],
) -> BisectionReport:
    failing = candidates[0]
    by_number = {
        one.version.number: one for one in candidates[1:] if one.version is not None
    }
    versions = [
        build_probed_version(number, by_number.get(number), cells)
        for number in bisection.versions
    ]
    last = failing.version.number if failing.version else None
    versions.append(build_probed_version(last, failing, cells))
    outcomes = [one.outcome for one in versions]
    return BisectionReport(versions, failing, search_first_failure(outcomes))


def build_probed_version(
    number: int | None,
    candidate: ExperimentCandidate | None,
    cells: dict[int, list[ExperimentRun]],
) -> ProbedVersion:
    found = cells[candidate.pk] if candidate else []
    is_over = all(one.state in (State.DONE, State.REFUSED) for one in found)
    outcome = (
        judge_version([one.passed for one in found]) if found and is_over else None
    )
    return ProbedVersion(number, candidate, outcome, found)


def is_search_over(experiment: Experiment) -> bool:
    return load_bisection(experiment).state.probe is None


def extend_bisection(experiment: Experiment) -> None:
    """Add the next version if the runs of all others have ended."""
    unfinished = experiment.cells.filter(state__in=(State.WAITING, State.STARTED))
    if unfinished.exists():
        return
    report = load_bisection(experiment)
    if report.state.probe is None:
        return
    versions = AgentVersion.objects.filter(agent=report.failing.agent_id)
    number = experiment.bisection.versions[report.state.probe]
    version = versions.select_related("spec").get(number=number)
    add_version(experiment, report.failing, version)


def add_version(
    experiment: Experiment, failing: ExperimentCandidate, version: AgentVersion
) -> None:
    """Add a version with the changes of the failing candidate; raise `NotAllowed`."""
    choice = replace(rebuild_choice(failing), version=version)
    problem = ""
    try:
        frozen = freeze_candidate(choice, by=experiment.owner)
    except NotAllowed:
        raise
    except RunsError as refused:  # such as a model that this version may not use
        problem = str(refused)
        frozen = FrozenAgent(load_spec(version.spec), version.spec, version)
    label = label_candidate(choice, several=False)
    with transaction.atomic():
        mine = Experiment.objects.filter(pk=experiment.pk, total=experiment.total)
        if not mine.select_for_update().exists():
            return  # another worker has added it
        create_probe(
            experiment,
            experiment.bisection.example_id,
            label,
            failing,
            frozen,
            problem=problem,
        )
