"""The figures of an experiment: per candidate, per evaluator, and the comparison."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from statistics import fmean
from typing import NamedTuple

from django.db.models import Avg, Count, Q

from runs.engine.types import FrozenModel
from runs.evaluation.comparison import (
    CLEAR_LEVEL,
    LEAST_EXAMPLES,
    PairedComparison,
    compare_paired,
)
from runs.evaluation.statistics import (
    pass_at_k,
    pass_hat_k,
    percentile,
    wilson_interval,
)
from runs.models import Experiment, ExperimentCandidate, Score
from runs.services.experiments.calls import count_calls
from runs.services.experiments.score_cells import is_comparing

EQUAL = 1e-9
MIN_TAG_EXAMPLES = 3
"""Examples of a tag that is named as the worst."""
Points = Mapping[int, Mapping[int, float]]
"""What the examples have scored: by candidate, then by example."""
MAX_TAGS = 20
"""Tags with figures; those of most examples."""


class EvaluatorFigures(FrozenModel):
    """What one evaluator says of one candidate."""

    revision: int
    scored: int
    decided: int
    passed: int
    mean: float | None

    @property
    def percent(self) -> float | None:
        """The pass rate, or the mean of an evaluator that does not decide."""
        part = self.passed / self.decided if self.decided else self.mean
        return None if part is None else 100 * part


class CandidateFigures(FrozenModel):
    """One candidate over all its runs."""

    candidate: int
    done: int
    total: int
    failed: int
    """Runs that failed, were canceled or could not be started."""
    not_scored: int
    """Runs that an evaluator could not score, and none failed: they may have passed."""
    decided: int
    """Runs that passed or did not."""
    passed: int
    low: float
    high: float
    """The 95% interval of the pass rate."""
    mean: float | None
    cost: Decimal
    tokens: int
    median_seconds: float | None
    p95_seconds: float | None
    evaluators: tuple[EvaluatorFigures, ...]
    pass_rate: float | None = None
    """The mean of the examples; of one, the part of its decided runs that passed."""
    judge_cost: Decimal = Decimal(0)
    """The part of `cost` that is of scores."""
    pass_at_k: float | None = None
    """The chance that one of all repetitions passes; null without repetitions."""
    pass_hat_k: float | None = None
    """The chance that all repetitions pass."""
    repeated_examples: int = 0
    """Those with a decision on all repetitions, of which these chances are."""
    decided_examples: int = 0

    @property
    def rate(self) -> float | None:
        if self.pass_rate is not None or not self.decided:
            return self.pass_rate
        return self.passed / self.decided  # of figures that were stored before

    @property
    def is_partly_repeated(self) -> bool:
        """Whether an example lacks a decision on some of its repetitions."""
        return 0 < self.repeated_examples < self.decided_examples

    @property
    def cost_per_run(self) -> float:
        """Of the runs alone."""
        return float(self.cost - self.judge_cost) / self.done if self.done else 0.0


class ComparisonFigures(FrozenModel):
    """A candidate against the baseline, paired by example."""

    candidate: int
    kind: str
    """A `ConclusionKind` of `runs.evaluation.comparison`."""
    better: int
    worse: int
    same: int
    examples: int
    difference: float
    low: float
    high: float
    """The 95% interval of the difference; -1 to 1 with too few examples for one."""
    smallest_points: float
    worst_tag: str = ""
    """A tag of most examples that got worse, and of fewer of the others."""

    @property
    def has_interval(self) -> bool:
        """Whether there are enough examples for one."""
        return self.examples >= LEAST_EXAMPLES


class TagComparison(FrozenModel):
    """A candidate against the baseline, over the examples with a tag."""

    candidate: int
    kind: str
    """A `ConclusionKind`; the more tags there are, the more a clear one needs."""
    better: int
    worse: int
    same: int
    difference: float
    low: float
    high: float
    """The 95% interval of the difference; -1 to 1 with too few examples for one."""

    @property
    def examples(self) -> int:
        """Those that both have scored."""
        return self.better + self.worse + self.same

    @property
    def has_interval(self) -> bool:
        """Whether there are enough examples for one."""
        return self.examples >= LEAST_EXAMPLES


class TagFigures(FrozenModel):
    """The runs of the examples with a tag, by candidate in their order."""

    tag: str
    examples: int
    passed: tuple[int, ...]
    decided: tuple[int, ...]
    comparisons: tuple[TagComparison, ...] = ()
    """Each candidate against the first one; empty while runs are unfinished."""


class ExperimentFigures(FrozenModel):
    """Everything that stands above the table."""

    at: str = ""
    candidates: tuple[CandidateFigures, ...] = ()
    comparisons: tuple[ComparisonFigures, ...] = ()
    tags: tuple[TagFigures, ...] = ()
    calls_made: int = 0
    """Tool calls that were executed, neither replayed nor held back nor refused."""
    calls_held_back: int = 0
    calls_not_recorded: int = 0
    """Replayed calls that were not made, because the recording has no answer."""

    @property
    def has_failures(self) -> bool:
        return any(one.failed for one in self.candidates)

    @property
    def has_unscored_runs(self) -> bool:
        return any(one.not_scored for one in self.candidates)


class CellFigures(NamedTuple):
    """The columns of a cell that count."""

    is_preference: bool
    """Whether all evaluators compare with the baseline; from 0.5 on it is as good."""
    example: int
    candidate: int
    state: str
    run_status: str
    passed: bool | None
    score: float | None
    cost: Decimal
    judge_cost: Decimal
    tokens: int
    seconds: float | None

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "refused")

    @property
    def points(self) -> float | None:
        return compute_points(self.passed, self.score, is_preference=self.is_preference)


def compute_points(
    passed: bool | None, score: float | None, *, is_preference: bool
) -> float | None:
    """Return what is compared of a run: passed or not, else the mean score."""
    return score if passed is None or is_preference else float(passed)


def compute_figures(
    experiment: Experiment, *, at: str, is_final: bool = True
) -> ExperimentFigures:
    """Return all figures; tags are compared at the end, which takes longest."""
    cells = load_cell_figures(experiment)
    candidates = list(experiment.candidates.all())
    by_evaluator = load_evaluator_figures(experiment)
    points = average_candidates(candidates, cells)
    calls = count_calls(experiment)
    return ExperimentFigures(
        at=at,
        candidates=tuple(
            build_candidate_figures(
                experiment,
                one,
                [cell for cell in cells if cell.candidate == one.pk],
                by_evaluator.get(one.pk, []),
                count=len(candidates),
            )
            for one in candidates
        ),
        comparisons=tuple(build_comparisons(experiment, candidates, points)),
        tags=tuple(
            build_tag_figures(
                experiment, candidates, cells, points if is_final else None
            )
        ),
        calls_made=calls.made,
        calls_held_back=calls.held_back,
        calls_not_recorded=calls.not_recorded,
    )


def build_tag_figures(
    experiment: Experiment,
    candidates: Sequence[ExperimentCandidate],
    cells: Sequence[CellFigures],
    points: Points | None,
) -> Iterable[TagFigures]:
    """Yield the tags of most examples, in alphabetical order; compared by `points`."""
    tagged: dict[str, set[int]] = defaultdict(set)
    examples = experiment.dataset.examples.in_version(experiment.dataset_version)
    for key, tags in examples.values_list("pk", "tags"):
        for tag in tags:
            tagged[tag].add(key)
    most = sorted(tagged, key=lambda tag: (-len(tagged[tag]), tag))[:MAX_TAGS]
    decided = [cell for cell in cells if cell.is_over and cell.passed is not None]
    for tag in sorted(most):
        counts = {one.pk: [0, 0] for one in candidates}
        for cell in decided:
            if cell.example in tagged[tag]:
                counts[cell.candidate][0] += cell.passed is True
                counts[cell.candidate][1] += 1
        yield TagFigures(
            tag=tag,
            examples=len(tagged[tag]),
            passed=tuple(passed for passed, _ in counts.values()),
            decided=tuple(count for _, count in counts.values()),
            comparisons=tuple(
                build_tag_comparison(
                    one.pk,
                    *pair_points(points[candidates[0].pk], points[one.pk], tagged[tag]),
                    seed=experiment.seed,
                    level=CLEAR_LEVEL / len(most),
                )
                for one in candidates[1:]
            )
            if points
            else (),
        )


def build_tag_comparison(
    candidate: int,
    before: Sequence[float],
    after: Sequence[float],
    *,
    seed: int,
    level: float,
) -> TagComparison:
    compared = compare_paired(before, after, seed=seed, level=level)
    return TagComparison(
        candidate=candidate,
        kind=compared.conclusion.kind,
        better=compared.better,
        worse=compared.worse,
        same=compared.same,
        difference=compared.difference,
        low=compared.interval.low,
        high=compared.interval.high,
    )


def average_repetitions(
    k: int, cells: Iterable[CellFigures]
) -> tuple[float | None, float | None, int]:
    """Return pass@k and pass^k for k repetitions, and of how many examples.

    Those count of which all repetitions are decided.
    """
    by_example: dict[int, list[bool]] = defaultdict(list)
    for cell in cells:
        if cell.passed is not None:
            by_example[cell.example].append(cell.passed)
    whole = [passed for passed in by_example.values() if len(passed) >= k]
    if k < 2 or not whole:
        return None, None, 0
    once = [pass_at_k(sum(one), len(one), k) or 0.0 for one in whole]
    always = [pass_hat_k(sum(one), len(one), k) or 0.0 for one in whole]
    return fmean(once), fmean(always), len(whole)


def load_cell_figures(experiment: Experiment) -> list[CellFigures]:
    rows = experiment.cells.order_by("place").values_list(
        *("example", "candidate", "state", "run_status", "passed", "score"),
        *("cost", "judge_cost", "tokens", "seconds"),
    )
    is_preference = is_preference_only(experiment)
    return [CellFigures(is_preference, *row) for row in rows]


def is_preference_only(experiment: Experiment) -> bool:
    """Whether every evaluator compares with the baseline.

    Pass or fail would then hide which answers are better.
    """
    return all(is_comparing(one) for one in experiment.evaluators.all())


def load_evaluator_figures(
    experiment: Experiment,
) -> dict[int, list[EvaluatorFigures]]:
    rows = (
        Score.objects.filter(cell__experiment=experiment)
        .order_by()
        .values("cell__candidate", "revision")
        .annotate(
            scored=Count("pk", filter=Q(problem="")),
            decided=Count("pk", filter=Q(passed__isnull=False)),
            passing=Count("pk", filter=Q(passed=True)),
            mean=Avg("value"),
        )
    )
    found: dict[int, list[EvaluatorFigures]] = defaultdict(list)
    for row in rows:
        found[row["cell__candidate"]].append(
            EvaluatorFigures(
                revision=row["revision"],
                scored=row["scored"],
                decided=row["decided"],
                passed=row["passing"],
                mean=row["mean"],
            )
        )
    return found


def build_candidate_figures(
    experiment: Experiment,
    candidate: ExperimentCandidate,
    cells: Sequence[CellFigures],
    evaluators: Iterable[EvaluatorFigures],
    *,
    count: int,
) -> CandidateFigures:
    over = [cell for cell in cells if cell.is_over]
    decided = [cell for cell in over if cell.passed is not None]
    passed = sum(cell.passed is True for cell in decided)
    scores = [cell.score for cell in over if cell.score is not None]
    seconds = [cell.seconds for cell in over if cell.seconds is not None]
    rates = average_passes(decided)
    interval = wilson_interval(math.fsum(rates), len(rates))
    once, always, whole = average_repetitions(experiment.repetitions, decided)
    return CandidateFigures(
        candidate=candidate.pk,
        done=len(over),
        total=experiment.total // count,
        failed=sum(is_failed(cell) for cell in over),
        not_scored=sum(cell.points is None and not is_failed(cell) for cell in over),
        decided=len(decided),
        passed=passed,
        low=interval.low,
        high=interval.high,
        mean=fmean(scores) if scores else None,
        cost=sum((cell.cost for cell in over), Decimal(0)),
        tokens=sum(cell.tokens for cell in over),
        median_seconds=percentile(seconds, 0.5),
        p95_seconds=percentile(seconds, 0.95),
        evaluators=tuple(evaluators),
        pass_rate=fmean(rates) if rates else None,
        judge_cost=sum((cell.judge_cost for cell in over), Decimal(0)),
        pass_at_k=once,
        pass_hat_k=always,
        repeated_examples=whole,
        decided_examples=len(rates),
    )


def is_failed(cell: CellFigures) -> bool:
    return cell.state == "refused" or cell.run_status in ("failed", "canceled", "")


def average_passes(decided: Iterable[CellFigures]) -> list[float]:
    """Return for each example how many of its repetitions pass, from 0 to 1."""
    found: dict[int, list[bool]] = defaultdict(list)
    for cell in decided:
        found[cell.example].append(cell.passed is True)
    return [fmean(passes) for passes in found.values()]


def average_by_example(cells: Iterable[CellFigures]) -> dict[int, float]:
    """Return the mean of the repetitions of each example that has a score."""
    found: dict[int, list[float]] = defaultdict(list)
    for cell in cells:
        if cell.is_over and cell.points is not None:
            found[cell.example].append(cell.points)
    return {example: fmean(points) for example, points in found.items()}


def build_comparisons(
    experiment: Experiment,
    candidates: Sequence[ExperimentCandidate],
    points: Points,
) -> Iterable[ComparisonFigures]:
    """Yield each candidate against the first one."""
    baseline = points[candidates[0].pk]
    for one in candidates[1:]:
        theirs = points[one.pk]
        before, after = pair_points(baseline, theirs, theirs)
        compared = compare_paired(before, after, seed=experiment.seed)
        worst_tag = find_worst_tag(
            experiment,
            {
                key: theirs[key] < baseline[key] - EQUAL
                for key in baseline.keys() & theirs
            },
        )
        yield build_comparison(one, compared, worst_tag)


def average_candidates(
    candidates: Iterable[ExperimentCandidate], cells: Sequence[CellFigures]
) -> Points:
    """Return by candidate what each example has scored."""
    return {
        one.pk: average_by_example(cell for cell in cells if cell.candidate == one.pk)
        for one in candidates
    }


def pair_points(
    baseline: Mapping[int, float], other: Mapping[int, float], examples: Iterable[int]
) -> tuple[list[float], list[float]]:
    """Return the points of both for those of the examples that both have scored."""
    shared = sorted(baseline.keys() & other.keys() & set(examples))
    return [baseline[key] for key in shared], [other[key] for key in shared]


def build_comparison(
    candidate: ExperimentCandidate, compared: PairedComparison, worst_tag: str
) -> ComparisonFigures:
    conclusion = compared.conclusion
    return ComparisonFigures(
        candidate=candidate.pk,
        kind=conclusion.kind,
        better=compared.better,
        worse=compared.worse,
        same=compared.same,
        examples=conclusion.examples,
        difference=compared.difference,
        low=compared.interval.low,
        high=compared.interval.high,
        smallest_points=conclusion.smallest_points,
        worst_tag=worst_tag,
    )


def find_worst_tag(experiment: Experiment, is_worse: Mapping[int, bool]) -> str:
    """Return the tag that most examples that got worse have; empty without one.

    A tag that is as frequent among all compared examples explains nothing.
    """
    fallen = sum(is_worse.values())
    if fallen < MIN_TAG_EXAMPLES:
        return ""
    worse, every = Counter[str](), Counter[str]()
    rows = experiment.dataset.examples.in_version(experiment.dataset_version)
    for key, tags in rows.values_list("pk", "tags"):
        if key in is_worse:
            every.update(tags)
            worse.update(tags if is_worse[key] else ())
    found = [
        tag
        for tag, count in worse.most_common()
        if count >= MIN_TAG_EXAMPLES
        and 2 * count > fallen
        and count * len(is_worse) > every[tag] * fallen
    ]
    return found[0] if found else ""


def load_stored_figures(experiment: Experiment) -> ExperimentFigures:
    """Return the figures that a worker stored last; empty before."""
    if not experiment.figures:
        return ExperimentFigures()
    return ExperimentFigures.model_validate(experiment.figures)
