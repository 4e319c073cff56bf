"""Advance experiments: create their rows, start runs, score ended ones.

A process does one turn after the other; judges are asked meanwhile, and no turn waits
for them. Each cell is started by the transaction that inserts its run, and ended by the
one that inserts its scores, so a process that dies leaves nothing half done, and two of
them do nothing twice.
"""

import logging
import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from math import ceil
from typing import NamedTuple, Protocol

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from runs.engine.types import ToolMode
from runs.models import (
    Agent,
    EvaluatorRevision,
    Example,
    Experiment,
    ExperimentRun,
    Run,
)
from runs.models.runs import FINISHED_STATUSES
from runs.services.errors import (
    FieldError,
    InputsRefused,
    NotAllowed,
    RecordingNotFound,
    RunsError,
    ScoringInterrupted,
)
from runs.services.evaluation.judge_requests import is_judge
from runs.services.evaluation.score_run import do_nothing
from runs.services.experiments.bisect import extend_bisection, is_search_over
from runs.services.experiments.claim import renew_lease
from runs.services.experiments.control import (
    find_unjudged_cells,
    reopen_unjudged_cells,
)
from runs.services.experiments.earlier_messages import find_messages_run
from runs.services.experiments.figures import compute_figures
from runs.services.experiments.score_cells import (
    ScoringTurn,
    is_comparing,
    needs_only_records,
    score_cells,
)
from runs.services.experiments.spending import is_budget_used, load_spending
from runs.services.experiments.verdict_limit import VerdictLimit
from runs.services.runs.start import FrozenAgent, start_run
from runs.services.spec.freeze import variables_of_spec
from runs.store.fast_insert import update_row
from runs.store.specs import load_spec
from tools.text.translatable import translatable

logger = logging.getLogger(__name__)

RENEWAL_SECONDS = 1.0
"""Between two renewals of the lease while runs are scored."""
CREATED_PER_TURN = 1_000
STARTED_AT_ONCE = 10
"""By one commit, which SQLite makes others wait for."""
SCORED_PER_TURN = 50
"""At least as many as a turn may start, or ended runs would pile up."""
SCORED_AT_ONCE = 10
"""By one commit, if evaluators only compute; a judge's score has its own."""
MOST_SLOW = 16
"""Runs of an experiment that are given to `SlowScoring` and not scored yet."""
FIGURES_SECONDS = 3.0
"""Between two computations while it runs."""
MAX_POSTPONED_SECONDS = 10.0
"""Of the scoring of an experiment whose judges' provider allows no request yet."""
postponed_until: dict[int, float] = {}
"""Until when (monotonic) scoring waits, by experiment of this process."""
BUDGET_USED = "budget"
"""The problem of an experiment that has used up its budget; pages say it."""
EVALUATORS_DELETED = translatable(
    "All its evaluators were deleted, so no run can be scored. Create another "
    "experiment."
)
NO_RECORDING = translatable(
    "The example has no source run, or its source run was deleted, so there is no "
    "recording for a strict replay."
)

State = ExperimentRun.State
Cells = Sequence[ExperimentRun]
ForEach = Callable[[Callable[[Cells], int], Iterable[Cells]], Iterable[int]]
"""Calls a function with each batch, as `map` does, perhaps in several threads."""


class SlowScoring(Protocol):
    """Scores runs that take long while turns continue."""

    def list_cells(self, experiment: int) -> Collection[int]:
        """Return the keys of runs that are not scored yet."""
        ...

    def add(self, cell: ExperimentRun, score: Callable[[], int]) -> None:
        """Have `score` called, which returns how many runs it has scored."""
        ...

    def take_count(self, experiment: int) -> int:
        """Return how many runs were scored since this was last asked."""
        ...


class ScoringAtOnce:
    """Scores runs in the turn."""

    def __init__(self) -> None:
        self.count = 0

    def list_cells(self, experiment: int) -> Collection[int]:
        return ()

    def add(self, cell: ExperimentRun, score: Callable[[], int]) -> None:
        self.count += score()

    def take_count(self, experiment: int) -> int:
        return self.count


class TurnResult(NamedTuple):
    started: int = 0
    scored: int = 0


def advance_experiment(
    experiment: Experiment,
    *,
    for_each: ForEach = map,
    slow: SlowScoring | None = None,
    before_effect: Callable[[], object] = do_nothing,
) -> TurnResult:
    """Do one turn; `before_effect` may raise `ScoringInterrupted` in its threads."""
    scored = score_ended_cells(
        experiment, for_each=for_each, slow=slow, before_effect=before_effect
    )
    started = 0
    if experiment.is_running and not experiment.evaluators.exists():
        stop_with_problem(experiment, EVALUATORS_DELETED)
    if experiment.is_running:
        add_cells(experiment)
        if is_budget_used(experiment):
            stop_with_problem(experiment, BUDGET_USED)
        else:
            started = start_cells(experiment)
    if not finish_experiment(experiment):
        update_figures(experiment, is_changed=bool(scored))
    if not experiment.is_running:
        write_last_figures(experiment)
    return TurnResult(started, scored)


def add_cells(experiment: Experiment) -> None:
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


@dataclass
class BlockedCandidates:
    """Candidates whose agent may not run now; their runs wait."""

    needed: int | None
    """The baseline, if an evaluator compares the answers of others with it."""
    reasons: dict[int, str] = field(default_factory=dict)
    """Why, by candidate."""

    @property
    def includes_needed(self) -> bool:
        """Whether the other runs have nothing to be compared with."""
        return self.needed in self.reasons


def start_cells(experiment: Experiment) -> int:
    """Start as many runs as may be unfinished at once; return how many.

    Those that have ended do not count, so that workers have runs while these are
    scored.
    If only runs of blocked candidates are left, the experiment stops with the reason.
    """
    cells = experiment.cells
    waiting = cells.filter(state=State.WAITING)
    unfinished = cells.filter(state=State.STARTED).exclude(
        Q(run=None) | Q(run__status__in=FINISHED_STATUSES)
    )
    free = experiment.concurrency - unfinished.count()
    if free <= 0 or not waiting.exists():
        return 0
    free = count_affordable_runs(experiment, most=free)
    if free <= 0:
        return 0
    candidates = load_candidates(experiment)
    blocked = BlockedCandidates(find_needed_baseline(experiment))
    count = 0
    # A batch may have only runs of one more blocked candidate.
    for _ in range(ceil(free / STARTED_AT_ONCE) + len(candidates)):
        if count < free:
            most = min(STARTED_AT_ONCE, free - count)
            count += start_batch(experiment, candidates, most, blocked)
    if blocked.reasons:
        others = waiting.exclude(candidate__in=blocked.reasons)
        has_more = experiment.created_runs < experiment.total or others.exists()
        if blocked.includes_needed or not has_more:
            stop_with_problem(experiment, next(iter(blocked.reasons.values())))
    return count


def count_affordable_runs(experiment: Experiment, *, most: int) -> int:
    """Return how many runs may be started, with the verdicts that are not made yet.

    What a verdict costs is not known before the first one. Until then, few runs wait
    for theirs.
    """
    if experiment.budget is None:
        return most
    spending = load_spending(experiment)
    if not spending.scored and any(map(is_judge, experiment.evaluators.all())):
        most = min(most, experiment.concurrency - spending.unscored)
    return spending.count_runs(most=most)


def find_needed_baseline(experiment: Experiment) -> int | None:
    """Return the first candidate if an evaluator compares with it."""
    revisions = experiment.evaluators.all()
    if not any(is_comparing(one) for one in revisions):
        return None
    return experiment.candidates.values_list("pk", flat=True).first()


def start_batch(
    experiment: Experiment,
    candidates: Mapping[int, LoadedCandidate],
    most: int,
    blocked: BlockedCandidates,
) -> int:
    """Start up to so many runs, all of them by one commit; return how many.

    Candidates that may not run are added to `blocked`.
    """
    waiting = experiment.cells.filter(state=State.WAITING).order_by("place")
    waiting = waiting.exclude(candidate__in=blocked.reasons)
    waiting = waiting.select_for_update(of=("self",))
    waiting = waiting.select_related("example__source_run")
    count = 0
    with transaction.atomic():
        for cell in waiting[:most]:
            if blocked.includes_needed:
                break
            if cell.candidate_id in blocked.reasons:
                continue
            try:
                start_cell(experiment, cell, candidates[cell.candidate_id])
                count += 1
            except RecordingNotFound as refused:
                refuse_cell(cell, str(refused))
            except NotAllowed as refused:
                blocked.reasons[cell.candidate_id] = str(refused)
            except RunsError as refused:
                refuse_cell(cell, str(refused))
    return count


def start_cell(
    experiment: Experiment, cell: ExperimentRun, candidate: LoadedCandidate
) -> None:
    """Start the run of a locked cell.

    It gets the inputs that its agent has, and the earlier messages of the source run.
    """
    names = variables_of_spec(candidate.frozen.spec)
    given = cell.example.inputs
    mode = build_tool_mode(experiment, cell.example)
    cell.run = start_run(
        candidate.agent,
        by=experiment.owner,
        inputs={name: given[name] for name in names if name in given},
        source=Run.Source.EXPERIMENT,
        is_test=True,
        frozen=candidate.frozen,
        tool_mode=mode,
        queue=Run.Queue.BULK,
        turns_of=find_messages_run(cell.example, by=experiment.owner),
    )
    cell.state = State.STARTED
    update_row(cell, ("state", "run"))


def build_tool_mode(experiment: Experiment, example: Example) -> ToolMode | None:
    """Return how the calls of a run are answered; None if all of them are made.

    Raises `InputsRefused` for a strict replay of an example without a source run.
    """
    kind = experiment.tool_mode
    if kind == Experiment.ToolMode.LIVE:
        return None
    if kind == Experiment.ToolMode.HOLD_BACK:
        return ToolMode(kind="hold_back")
    if kind in (Experiment.ToolMode.REPLAY_BY_TOOL, Experiment.ToolMode.REPLAY_READS):
        return ToolMode(
            kind="replay_by_tool",
            recording=example.source_run_id,
            sends_reads=kind == Experiment.ToolMode.REPLAY_READS,
        )
    if example.source_run_id is None:
        raise InputsRefused([FieldError("source_run", NO_RECORDING)])
    return ToolMode(kind="replay_strict", recording=example.source_run_id)


def refuse_cell(cell: ExperimentRun, problem: str) -> None:
    """Note why no run could be started; the others continue."""
    ExperimentRun.objects.filter(pk=cell.pk, state=State.WAITING).update(
        state=State.REFUSED, problem=problem
    )


def score_ended_cells(
    experiment: Experiment,
    *,
    for_each: ForEach = map,
    slow: SlowScoring | None = None,
    before_effect: Callable[[], object] = do_nothing,
) -> int:
    """Score runs that have ended; return how many.

    If the provider of a judge allows no request for a while, the others wait as long.
    Without `slow`, the turn takes as long as a judge does.
    """
    slow = slow or ScoringAtOnce()
    lease = LeaseRenewal(experiment)
    count = 0
    if time.monotonic() >= postponed_until.get(experiment.pk, 0.0):
        postponed_until.pop(experiment.pk, None)

        def check() -> None:
            before_effect()
            lease.renew_if_due()

        turn = ScoringTurn(check)
        revisions = list(experiment.evaluators.select_related("evaluator__owner"))
        if all(map(needs_only_records, revisions)):
            cells = list(find_ended_cells(experiment, revisions)[:SCORED_PER_TURN])
            starts = range(0, len(cells), SCORED_AT_ONCE)
            batches = [cells[n : n + SCORED_AT_ONCE] for n in starts]
            for scored in for_each(
                lambda batch: score_cells(batch, revisions, turn), batches
            ):
                count += scored
                lease.renew_if_due()
        else:
            score_slowly(experiment, revisions, turn, slow)
    lease.renew_if_due()
    return count + slow.take_count(experiment.pk)


def find_ended_cells(
    experiment: Experiment, revisions: Sequence[EvaluatorRevision]
) -> QuerySet[ExperimentRun]:
    """Return runs that can be scored, in one order.

    So two processes that score the same cells cannot deadlock.
    """
    started = experiment.cells.filter(state=State.STARTED)
    ended = started.filter(Q(run=None) | Q(run__status__in=FINISHED_STATUSES))
    if any(is_comparing(one) for one in revisions):
        ended = ended.exclude(Exists(find_unfinished_baselines(experiment)))
    return ended.select_related("run", "example").order_by("pk")


def score_slowly(
    experiment: Experiment,
    revisions: Sequence[EvaluatorRevision],
    turn: ScoringTurn,
    slow: SlowScoring,
) -> None:
    """Give runs to `slow`, as long as it has few of this experiment.

    Judges are asked while the budget allows it. When it is used up and the experiment
    has stopped, the other runs are stored as not scored.
    """
    limit = VerdictLimit(experiment, revisions)

    def score(cell: ExperimentRun) -> int:
        others = max(len(slow.list_cells(experiment.pk)) - 1, 0)
        answer = limit.decide(cell, in_flight=others)
        if answer == "wait":
            return 0
        count = score_cells([cell], revisions, turn, with_judges=answer == "ask")
        if turn.postponed:
            pause = min(turn.postponed, MAX_POSTPONED_SECONDS)
            postponed_until[experiment.pk] = time.monotonic() + pause
        return count

    known = slow.list_cells(experiment.pk)
    ended = find_ended_cells(experiment, revisions).exclude(pk__in=known)
    free = max(MOST_SLOW - len(known), 0)
    for cell in ended[: limit.count_runs(in_flight=len(known), most=free)]:
        slow.add(cell, partial(score, cell))


class LeaseRenewal:
    """Renews the lease of a claimed experiment now and then, from any thread."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.renewed_at = time.monotonic()
        self.is_lost = False

    def renew_if_due(self) -> None:
        """Raise `ScoringInterrupted` if another process has the experiment."""
        is_due = time.monotonic() - self.renewed_at > RENEWAL_SECONDS
        if is_due and not self.is_lost:
            self.renewed_at = time.monotonic()
            self.is_lost = not renew_lease(self.experiment)
        if self.is_lost:
            raise ScoringInterrupted


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


def stop_with_problem(experiment: Experiment, problem: str) -> None:
    """Start no more runs; those that are unfinished are still scored."""
    running = Experiment.objects.filter(
        pk=experiment.pk, status=Experiment.Status.RUNNING
    )
    running.update(
        status=Experiment.Status.STOPPED, problem=problem, needs_figures=True
    )
    experiment.refresh_from_db(fields=["status", "problem"])


def finish_experiment(experiment: Experiment) -> bool:
    """End an experiment without waiting and unfinished runs; whether it did.

    One that a person stopped ends, too, if nothing of it is missing.
    """
    statuses = [Experiment.Status.RUNNING]
    if not experiment.is_bisection and not experiment.problem:
        statuses.append(Experiment.Status.STOPPED)
    if experiment.status not in statuses or experiment.created_runs < experiment.total:
        return False
    if experiment.cells.filter(state__in=(State.WAITING, State.STARTED)).exists():
        return False
    if experiment.is_bisection and not is_search_over(experiment):
        return False  # its last run was scored after this turn had looked for more
    if find_unjudged_cells(experiment).exists():
        if experiment.is_running:  # the budget was raised meanwhile
            reopen_unjudged_cells(experiment)
        return False
    rows = Experiment.objects.filter(pk=experiment.pk, status__in=statuses)
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
    figures = compute_figures(
        experiment, at=now.isoformat(), is_final=not has_unfinished
    )
    experiment.figures = figures.model_dump(mode="json")
    experiment.save(update_fields=["figures"])


def write_last_figures(experiment: Experiment) -> None:
    """Write the figures of an experiment that has ended, if they are old.

    Runs that are scored by then would otherwise never count: no turn follows. The row
    is locked, so that whoever has a run scored again meanwhile asks for another time.
    """
    with transaction.atomic():
        rows = Experiment.objects.filter(pk=experiment.pk, needs_figures=True)
        if not rows.select_for_update(of=("self",)).exists():
            return
        if experiment.cells.filter(state=State.STARTED).exists():
            return
        figures = compute_figures(experiment, at=timezone.now().isoformat())
        rows.update(needs_figures=False, figures=figures.model_dump(mode="json"))
    experiment.refresh_from_db(fields=["needs_figures", "figures"])
