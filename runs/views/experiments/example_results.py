"""What the table of an experiment filters and sorts its examples by.

The database adds up the runs of each example, so that the page reads a row for each of
10,000 examples, and their runs only for those that it shows.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import NamedTuple

from django.db.models import Avg, Case, Count, F, FloatField, Max, Q, Sum, Value, When

from runs.models import AgentStep, Experiment, ExperimentRun
from runs.services.experiments.figures import is_preference_only
from runs.ui.evaluation.failures import HAS_NO_ANSWER, IS_OVER

State = ExperimentRun.State
EQUAL = 1e-9


class ExampleResult(NamedTuple):
    """The runs of an example by all candidates."""

    pk: int
    number: int
    done: int
    """Numbers of runs."""
    not_passed: int
    without_answer: int
    unscored: int
    running: int
    waiting: int
    cost: Decimal
    seconds: float
    """Of the longest run."""
    smallest: float
    """Difference of a candidate to the baseline, each the mean of its repetitions."""
    largest: float
    lowest: float
    """Points of the worst candidate, the mean of its repetitions; infinite for none."""


def load_example_results(
    experiment: Experiment, candidates: Sequence[int]
) -> list[ExampleResult]:
    """Return the examples that have runs, by number."""
    points = F("score") if is_preference_only(experiment) else build_points()
    means = {
        f"points_{n}": Avg(points, filter=IS_OVER & Q(candidate=pk))
        for n, pk in enumerate(candidates)
    }
    rows = experiment.cells.order_by("example__number").values("example")
    found = rows.annotate(
        done=count_cells(Q(state=State.DONE)),
        not_passed=count_cells(Q(passed=False)),
        without_answer=count_cells(HAS_NO_ANSWER),
        scored=Count(points, filter=IS_OVER & ~HAS_NO_ANSWER),
        over=count_cells(IS_OVER),
        running=count_cells(Q(state=State.STARTED)),
        waiting=count_cells(Q(state=State.WAITING)),
        sum_cost=Sum("cost"),
        longest=Max("seconds"),
        **means,
    )
    columns = found.values_list(
        *("example", "example__number", "done", "not_passed", "without_answer"),
        *("scored", "over", "running", "waiting", "sum_cost", "longest"),
        *means,
    )
    return [build_result(*row) for row in columns]


def build_points() -> Case:
    """Return `runs.services.experiments.figures.compute_points` for the database."""
    return Case(
        When(passed=True, then=Value(1.0)),
        When(passed=False, then=Value(0.0)),
        default=F("score"),
        output_field=FloatField(),
    )


def count_cells(which: Q) -> Count:
    return Count("pk", filter=which)


def build_result(  # the columns of the query
    pk: int,
    number: int,
    done: int,
    not_passed: int,
    without_answer: int,
    scored: int,
    over: int,
    running: int,
    waiting: int,
    cost: Decimal,
    seconds: float | None,
    baseline: float | None,
    *others: float | None,
) -> ExampleResult:
    points = [one for one in (baseline, *others) if one is not None]
    changes = [0.0]
    if baseline is not None:
        changes = [one - baseline for one in others if one is not None] or changes
    return ExampleResult(
        pk,
        number,
        done,
        not_passed,
        without_answer,
        over - without_answer - scored,
        running,
        waiting,
        cost,
        seconds or 0.0,
        min(changes),
        max(changes),
        min(points, default=math.inf),
    )


def find_other_tools(
    experiment: Experiment, results: Sequence[ExampleResult], candidates: Sequence[int]
) -> set[int]:
    """Return the examples on which a candidate called other tools than the baseline.

    All repetitions count; candidates with runs that have not ended do not.
    """
    if len(candidates) == 1:
        return set()
    steps = AgentStep.objects.filter(run__experiment_run__experiment=experiment)
    steps = steps.exclude(tool__startswith="_").order_by()
    rows = steps.values_list("run__experiment_run__example", "tool")
    calls = {  # cheaper for the database than counting distinct candidates
        f"calls_{n}": count_cells(Q(run__experiment_run__candidate=pk))
        for n, pk in enumerate(candidates)
    }
    is_lacking = reduce(or_, (Q(**{name: 0}) for name in calls))
    found = {example for example, *_ in rows.annotate(**calls).filter(is_lacking)}
    total = len(candidates) * experiment.repetitions
    open_examples = {one.pk for one in results if one.pk in found and one.done < total}
    return found - open_examples | filter_ended(experiment, open_examples, candidates)


def filter_ended(
    experiment: Experiment, examples: Collection[int], candidates: Sequence[int]
) -> set[int]:
    """Return those on which candidates that have ended called different tools."""
    if not examples:
        return set()
    cells = experiment.cells.filter(example__in=examples)
    ended = cells.values_list("example", "candidate").annotate(
        done=count_cells(Q(state=State.DONE)), total=Count("pk")
    )
    is_ended = {(e, c) for e, c, done, total in ended.order_by() if done == total}
    called: dict[tuple[int, int], set[str]] = defaultdict(set)
    names = cells.exclude(run__steps__tool__startswith="_").order_by()
    for example, candidate, tool in names.values_list(
        "example", "candidate", "run__steps__tool"
    ).distinct():
        if tool is not None:
            called[example, candidate].add(tool)
    baseline, *others = candidates
    return {
        example
        for example in examples
        for other in others
        if {(example, baseline), (example, other)} <= is_ended
        and called[example, baseline] != called[example, other]
    }
