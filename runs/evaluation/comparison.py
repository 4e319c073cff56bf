"""Compare a candidate with a baseline, paired by example.

Two things must agree before a difference is called clear: the exact sign test of how
many examples rose and fell, and the bootstrap interval of the mean difference. The test
alone knows no sizes, the interval alone is too sure of itself with few examples.
"""

import itertools
import math
import random
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean, pstdev
from typing import Literal, NamedTuple

from runs.evaluation.statistics import Z_95, Interval, percentile

CLEAR_LEVEL = 0.02
"""How rarely two equal candidates may look clearly different."""
PROBABLE_LEVEL = 0.07
"""The same for one that may be better or worse: five examples to none are enough."""

RESAMPLES = 2_000
LEAST_EXAMPLES = 5
"""With fewer, any difference could be chance, so none has an interval."""
MOST_RESAMPLED = 300
"""With more examples the mean is as good as normally distributed."""

EQUAL = 1e-9
"""Scores that differ by less are the same."""

ConclusionKind = Literal[
    "nothing_to_compare",
    "no_difference",
    "could_be_chance",
    "probably_better",
    "probably_worse",
    "clearly_better",
    "clearly_worse",
]


class Conclusion(NamedTuple):
    """What a comparison says, for a page to put into a sentence."""

    kind: ConclusionKind
    better: int
    worse: int
    same: int
    examples: int
    smallest_points: float
    """Percentage points of difference that so many examples cannot show."""


class PairedComparison(NamedTuple):
    """A candidate against the baseline, over the examples that both have."""

    better: int
    worse: int
    same: int
    difference: float
    """Mean of the candidate's scores less the baseline's."""
    interval: Interval
    """The 95% interval of the difference."""
    conclusion: Conclusion


def compare_paired(
    baseline: Sequence[float],
    candidate: Sequence[float],
    *,
    seed: int,
    level: float = CLEAR_LEVEL,
) -> PairedComparison:
    """Compare two equally long lists of scores, one pair per example.

    The same seed gives the same result. Leave out examples that one of them has no
    score for, and give the mean of repetitions. `level` is how rarely two equal
    candidates may look clearly different: of n comparisons, give each an nth of it.
    """
    changes = [b - a for a, b in zip(baseline, candidate, strict=True)]
    better = sum(change > EQUAL for change in changes)
    worse = sum(change < -EQUAL for change in changes)
    same = len(changes) - better - worse
    interval = bootstrap_interval(changes, seed=seed)
    kind = _conclude(better, worse, len(changes), interval, level=level)
    points = smallest_visible_points(len(changes))
    return PairedComparison(
        better=better,
        worse=worse,
        same=same,
        difference=fmean(changes) if changes else 0.0,
        interval=interval,
        conclusion=Conclusion(kind, better, worse, same, len(changes), points),
    )


def _conclude(
    better: int, worse: int, count: int, interval: Interval, *, level: float
) -> ConclusionKind:
    if count == 0:
        return "nothing_to_compare"
    if better == worse == 0:
        return "no_difference"
    chance = sign_test(better, worse)
    if chance > PROBABLE_LEVEL:
        return "could_be_chance"
    if interval.low > 0 and better > worse:
        return "clearly_better" if chance <= level else "probably_better"
    if interval.high < 0 and worse > better:
        return "clearly_worse" if chance <= level else "probably_worse"
    return "could_be_chance"


def bootstrap_interval(changes: Sequence[float], *, seed: int) -> Interval:
    """Return the 95% interval of the mean of `changes`, by resampling.

    All of -1 to 1 with fewer than `LEAST_EXAMPLES`. Resampling alone is too sure of
    itself, and certain if all changes are equal. So one more example is drawn from,
    half of which rises and half of which falls as far as any of them does; Agresti and
    Min (2005) add examples to paired proportions in this way.
    """
    count = len(changes)
    if count < LEAST_EXAMPLES:
        return Interval(-1.0, 1.0)
    most = max(map(abs, changes)) or 1.0
    pool = [*changes, *changes, most, -most]
    if count > MOST_RESAMPLED:
        middle, off = fmean(pool), Z_95 * pstdev(pool) / math.sqrt(count)
        return Interval(max(middle - off, -most), min(middle + off, most))
    draw = random.Random(seed)  # noqa: S311  (statistics, no secret)
    means = [math.fsum(draw.choices(pool, k=count)) / count for _ in range(RESAMPLES)]
    low, high = percentile(means, 0.025), percentile(means, 0.975)
    assert low is not None
    assert high is not None
    return Interval(low, high)


def sign_test(better: int, worse: int) -> float:
    """Return the two-sided p value: are rises as frequent as falls?"""
    count, most = better + worse, max(better, worse)
    if count == 0:
        return 1.0
    return min(2 * _tail(count, most), 1.0)


@lru_cache(maxsize=4096)
def _tail(count: int, least: int) -> float:
    """Return the chance of at least so many heads in `count` tosses of a coin."""
    logs = [_log_binomial(count, n, 0.5) for n in range(least, count + 1)]
    return math.fsum(math.exp(one) for one in logs)


def _log_binomial(count: int, n: int, chance: float) -> float:
    ways = math.lgamma(count + 1) - math.lgamma(n + 1) - math.lgamma(count - n + 1)
    return ways + n * math.log(chance) + (count - n) * math.log1p(-chance)


LEAST_CLEAR = next(n for n in itertools.count(1) if sign_test(n, 0) <= CLEAR_LEVEL)
"""Examples that must rise, with none that falls, for a clear difference."""


def smallest_visible_points(examples: int) -> float:
    """Return the percentage points that so many examples cannot show as clear.

    100 if even all of them are too few.
    """
    return 100 * LEAST_CLEAR / max(examples, LEAST_CLEAR)
