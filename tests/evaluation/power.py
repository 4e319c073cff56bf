"""How often the sign test notices a difference, computed exactly."""

import math
from functools import lru_cache

from runs.evaluation.comparison import CLEAR_LEVEL, sign_test


def detection_power(examples: int, *, rise: float, fall: float) -> float:
    """Return the chance that a difference is called clear, and not the wrong way.

    `rise` and `fall` are the parts of all examples that pass with one candidate only.
    Exact for the sign test, which decides nearly always.
    """
    changed = rise + fall
    power = 0.0
    for count in range(1, examples + 1):
        needed = _least_clear(count)
        if needed is None:
            continue
        chance = _chance_of(examples, count, changed)
        power += chance * _tail_of(count, needed, max(rise, fall) / changed)
    return power


@lru_cache(maxsize=4096)
def _least_clear(count: int) -> int | None:
    """Return how many of `count` changes must go one way to be clear."""
    low, high = count // 2 + 1, count
    if sign_test(high, 0) > CLEAR_LEVEL:
        return None
    while low < high:
        middle = (low + high) // 2
        if sign_test(middle, count - middle) <= CLEAR_LEVEL:
            high = middle
        else:
            low = middle + 1
    return low


def _tail_of(count: int, least: int, chance: float) -> float:
    return math.fsum(_chance_of(count, n, chance) for n in range(least, count + 1))


def _chance_of(count: int, n: int, chance: float) -> float:
    if chance >= 1:
        return float(n == count)
    return math.comb(count, n) * chance**n * (1 - chance) ** (count - n)
