"""Figures of many scores: rates with intervals, percentiles, agreement."""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

Z_95 = 1.959963984540054
"""Standard deviations that 95% of a normal distribution lie within."""


class Interval(NamedTuple):
    low: float
    high: float


def wilson_interval(passed: float, total: int) -> Interval:
    """Return the 95% interval of a pass rate (Wilson 1927); 0 to 1 without runs.

    `passed` is a sum of rates if each of the `total` was repeated: repetitions of an
    example are not independent of each other.
    """
    _check_counts(passed, total)
    if total == 0:
        return Interval(0.0, 1.0)
    rate, square = passed / total, Z_95**2
    middle = (rate + square / (2 * total)) / (1 + square / total)
    spread = math.sqrt(rate * (1 - rate) / total + square / (4 * total**2))
    off = Z_95 * spread / (1 + square / total)
    low = 0.0 if passed == 0 else max(middle - off, 0.0)
    high = 1.0 if passed == total else min(middle + off, 1.0)
    return Interval(low, high)


def pass_at_k(passed: int, total: int, k: int) -> float | None:
    """Return the chance that one of `k` repetitions passes; None with fewer.

    Unbiased: over all ways to select `k` of the `total` (Chen et al. 2021).
    """
    _check_counts(passed, total)
    if not 1 <= k <= total:
        return None
    return 1 - math.comb(total - passed, k) / math.comb(total, k)


def pass_hat_k(passed: int, total: int, k: int) -> float | None:
    """Return the chance that all of `k` repetitions pass (pass^k); None with fewer."""
    _check_counts(passed, total)
    if not 1 <= k <= total:
        return None
    return math.comb(passed, k) / math.comb(total, k)


def _check_counts(passed: float, total: int) -> None:
    if not 0 <= passed <= total:
        raise ValueError(f"{passed} of {total} cannot have passed.")


def percentile(values: Sequence[float], part: float) -> float | None:
    """The value below which `part` (0 to 1) lies, interpolated; None if empty."""
    if not 0 <= part <= 1:
        raise ValueError(f"{part} is not between 0 and 1.")
    if not values:
        return None
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    below, above = math.floor(place), math.ceil(place)
    share = place - below
    return ordered[below] * (1 - share) + ordered[above] * share


class Agreement(NamedTuple):
    """How far two raters agree on the same runs."""

    runs: int
    same: float
    """Part of the runs with the same label."""
    kappa: float | None
    """Cohen's kappa; None if both always gave one and the same label."""


def compute_agreement(
    one: Sequence[Hashable], other: Sequence[Hashable]
) -> Agreement | None:
    """Return the agreement of two equally long lists of labels; None if empty."""
    if len(one) != len(other):
        raise ValueError("Both raters must have rated the same runs.")
    count = len(one)
    if count == 0:
        return None
    same = sum(a == b for a, b in zip(one, other, strict=True)) / count
    first, second = Counter(one), Counter(other)
    by_chance = sum(first[label] * second[label] for label in first) / count**2
    kappa = None if by_chance == 1 else (same - by_chance) / (1 - by_chance)
    return Agreement(count, same, kappa)
