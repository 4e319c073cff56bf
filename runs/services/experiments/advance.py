"""Advance experiments: create their rows, start runs, score ended ones.

A process does one turn after the other. Each cell is started by the transaction that
inserts its run, and ended by the one that inserts its scores, so a process that dies
leaves nothing half done, and two of them do nothing twice.
"""

import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Now
from django.utils import timezone

from runs.engine.types import ToolMode
from runs.models import Agent, Example, Experiment, ExperimentRun, Run
from runs.models.runs import FINISHED_STATUSES
from runs.services.errors import FieldError, InputsRefused, NotAllowed, RunsError
from runs.services.experiments.bisect import extend_bisection
from runs.services.experiments.claim import renew_lease
from runs.services.experiments.figures import compute_figures
from runs.services.experiments.score_cells import is_comparing, score_cell
from runs.services.runs.start import FrozenAgent, start_run
from runs.services.spec.freeze import variables_of_spec
from runs.store.specs import load_spec
from tools.text.translatable import translatable

logger = logging.getLogger(__name__)

RENEWAL_SECONDS = 1.0
"""Between two renewals of the lease while runs are scored."""
CREATED_PER_TURN = 1_000
STARTED_AT_ONCE = 10
"""By one commit, which SQLite makes others wait for."""
SCORED_PER_TURN = 50
FIGURES_SECONDS = 3.0
"""Between two computations while it runs."""
BUDGET_USED = "budget"
"""The problem of an experiment that has used up its budget; pages say it."""
NO_RECORDING = translatable(
    "The example has no source run, so there is no recording for a strict replay."
)

State = ExperimentRun.State
ForEach = Callable[
    [Callable[[ExperimentRun], bool], Sequence[ExperimentRun]], Iterable[bool]
]
"""Calls a function with each cell, as `map` does, perhaps in several threads."""


class TurnResult(NamedTuple):
    """What a turn did."""

    started: int = 0
    scored: int = 0


def advance_experiment(
    experiment: Experiment, *, for_each: ForEach = map
) -> TurnResult:
    """Do one turn of a claimed experiment."""
    scored = score_ended_cells(experiment, for_each=for_each)
    started = 0
    if experiment.is_running:
        add_cells(experiment)
        if is_budget_used(experiment):
            stop_with_problem(experiment, BUDGET_USED)
        else:
            started = start_cells(experiment)
    if not finish_experiment(experiment):
        update_figures(experiment, is_changed=bool(scored))
    return TurnResult(started, scored)


def add_cells(experiment: Experiment) -> None:
    """Create the rows that the next runs need."""
    if not experiment.is_bisection:
        create_cells(experiment)
        return
    try:
        extend_bisection(experiment)
    except NotAllowed as refused:
        stop_with_problem(experiment, str(refused))


def create_cells(experiment: Experiment) -> None:
    """Create the next rows, in an order that the seed decides."""
    if experiment.created_runs >= experiment.total:
        return
    examples = Example.objects.filter(dataset=experiment.dataset_id)
    keys = list(
        examples.in_version(experiment.dataset_version)
        .order_by("number")
        .values_list("pk", flat=True)
    )
    random.Random(experiment.seed).shuffle(keys)  # noqa: S311  # an order, no secret
    candidates = list(experiment.candidates.values_list("pk", flat=True))
    width = len(candidates) * experiment.repetitions
    first = experiment.created_runs
    rows = []
    for place in range(first, min(first + CREATED_PER_TURN, experiment.total)):
        example, rest = divmod(place, width)
        repetition, candidate = divmod(rest, len(candidates))
        rows.append(
            ExperimentRun(
                experiment=experiment,
                example_id=keys[example],
                candidate_id=candidates[candidate],
                repetition=repetition,
                place=place,
            )
        )
    with transaction.atomic():
        ExperimentRun.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)
        experiment.created_runs = first + len(rows)
        experiment.save(update_fields=["created_runs"])


class LoadedCandidate(NamedTuple):
    """What each of its runs needs."""

    agent: Agent
    frozen: FrozenAgent


def load_candidates(experiment: Experiment) -> dict[int, LoadedCandidate]:
    """Return the candidates by key."""
    rows = experiment.candidates.select_related("spec", "agent", "version")
    return {
        row.pk: LoadedCandidate(
            row.agent, FrozenAgent(load_spec(row.spec), row.spec, row.version)
        )
        for row in rows
    }


def start_cells(experiment: Experiment) -> int:
    """Start as many runs as may be unfinished at once; return how many."""
    cells = experiment.cells
    free = experiment.concurrency - cells.filter(state=State.STARTED).count()
    if free <= 0 or not cells.filter(state=State.WAITING).exists():
        return 0
    candidates = load_candidates(experiment)
    count = 0
    for done in range(0, free, STARTED_AT_ONCE):
        if experiment.is_running:
            most = min(STARTED_AT_ONCE, free - done)
            count += start_batch(experiment, candidates, most)
    return count


def start_batch(
    experiment: Experiment, candidates: Mapping[int, LoadedCandidate], most: int
) -> int:
    """Start up to so many runs, all of them by one commit; return how many."""
    waiting = experiment.cells.filter(state=State.WAITING).order_by("place")
    waiting = waiting.select_for_update(of=("self",)).select_related("example")
    count = 0
    with transaction.atomic():
        for cell in waiting[:most]:
            try:
                start_cell(experiment, cell, candidates[cell.candidate_id])
                count += 1
            except NotAllowed as refused:
                stop_with_problem(experiment, str(refused))
                break
            except RunsError as refused:
                refuse_cell(cell, str(refused))
    return count


def start_cell(
    experiment: Experiment, cell: ExperimentRun, candidate: LoadedCandidate
) -> None:
    """Start the run of a locked cell; it gets the inputs that its agent has."""
    names = variables_of_spec(candidate.frozen.spec)
    given = cell.example.inputs
    run = start_run(
        candidate.agent,
        by=experiment.owner,
        inputs={name: given[name] for name in names if name in given},
        source=Run.Source.EXPERIMENT,
        is_test=True,
        frozen=candidate.frozen,
        tool_mode=build_tool_mode(experiment, cell.example),
        queue=Run.Queue.BULK,
    )
    ExperimentRun.objects.filter(pk=cell.pk).update(state=State.STARTED, run=run)


def build_tool_mode(experiment: Experiment, example: Example) -> ToolMode | None:
    """Return how the calls of a run are answered; None if all of them are made.

    Raises `InputsRefused` for a strict replay of an example without a source run.
    """
    kind = experiment.tool_mode
    if kind == Experiment.ToolMode.LIVE:
        return None
    if kind == Experiment.ToolMode.HOLD_BACK:
        return ToolMode(kind="hold_back")
    if kind == Experiment.ToolMode.REPLAY_BY_TOOL:
        return ToolMode(kind="replay_by_tool", recording=example.source_run_id)
    if example.source_run_id is None:
        raise InputsRefused([FieldError("source_run", NO_RECORDING)])
    return ToolMode(kind="replay_strict", recording=example.source_run_id)


def refuse_cell(cell: ExperimentRun, problem: str) -> None:
    """Note why no run could be started; the others go on."""
    ExperimentRun.objects.filter(pk=cell.pk, state=State.WAITING).update(
        state=State.REFUSED, problem=problem
    )


def score_ended_cells(experiment: Experiment, *, for_each: ForEach = map) -> int:
    """Score runs that have ended; return how many."""
    started = experiment.cells.filter(state=State.STARTED)
    ended = started.filter(Q(run=None) | Q(run__status__in=FINISHED_STATUSES))
    revisions = list(experiment.evaluators.select_related("evaluator__owner"))
    if any(is_comparing(one) for one in revisions):
        ended = ended.exclude(Exists(find_unfinished_baselines(experiment)))
    cells = list(ended.select_related("run", "example")[:SCORED_PER_TURN])
    count, renewed = 0, time.monotonic()
    for is_scored in for_each(lambda cell: score_cell(cell, revisions), cells):
        count += is_scored
        if time.monotonic() - renewed > RENEWAL_SECONDS:
            renewed = time.monotonic()
            renew_lease(experiment)
    return count


def find_unfinished_baselines(experiment: Experiment) -> QuerySet[ExperimentRun]:
    """Return the baseline's run of the same example if it has not ended yet.

    It is always started first, so waiting for it takes no place of a run it needs.
    """
    same = experiment.cells.filter(
        candidate__position=0,
        example=OuterRef("example"),
        repetition=OuterRef("repetition"),
        state=State.STARTED,
    )
    return same.exclude(Q(run=None) | Q(run__status__in=FINISHED_STATUSES))


def is_budget_used(experiment: Experiment) -> bool:
    """Whether ended and unfinished runs have cost the budget."""
    if experiment.budget is None:
        return False
    ended = experiment.cells.aggregate(cost=Sum("cost"))["cost"] or 0
    unfinished = experiment.cells.filter(state=State.STARTED)
    running = unfinished.aggregate(cost=Sum("run__cost"))["cost"] or 0
    return bool(ended + running >= experiment.budget)


def stop_with_problem(experiment: Experiment, problem: str) -> None:
    """Start no more runs; those that are unfinished are still scored."""
    running = Experiment.objects.filter(
        pk=experiment.pk, status=Experiment.Status.RUNNING
    )
    running.update(status=Experiment.Status.STOPPED, problem=problem)
    experiment.refresh_from_db(fields=["status", "problem"])


def finish_experiment(experiment: Experiment) -> bool:
    """End an experiment without waiting and unfinished runs; whether it did."""
    if not experiment.is_running or experiment.created_runs < experiment.total:
        return False
    if experiment.cells.filter(state__in=(State.WAITING, State.STARTED)).exists():
        return False
    rows = Experiment.objects.filter(pk=experiment.pk, status=Experiment.Status.RUNNING)
    # In one statement: a gate judges an ended experiment by its figures.
    figures = compute_figures(experiment, at=timezone.now().isoformat())
    is_ended = rows.update(
        status=Experiment.Status.DONE,
        ended_at=Now(),
        figures=figures.model_dump(mode="json"),
    )
    experiment.refresh_from_db(fields=["status", "ended_at", "figures"])
    return bool(is_ended)


def update_figures(experiment: Experiment, *, is_changed: bool) -> None:
    """Store the figures for the page, at the end and now and then before it."""
    if not is_changed:
        return
    now = timezone.now()
    at = experiment.figures.get("at", "")
    recent = (now - timedelta(seconds=FIGURES_SECONDS)).isoformat()
    has_unfinished = experiment.cells.filter(state=State.STARTED).exists()
    if at > recent and experiment.is_running and has_unfinished:
        return
    figures = compute_figures(experiment, at=now.isoformat())
    experiment.figures = figures.model_dump(mode="json")
    experiment.save(update_fields=["figures"])
