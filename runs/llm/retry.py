"""Retries of failed model calls: full-jitter backoff that respects the server."""

import random

from runs.llm.errors import ModelCallError

MAX_ATTEMPTS = 5
BASE_DELAY = 1.0
MAX_DELAY = 30.0
MAX_RETRY_AFTER = 3600.0
"""Seconds that a server may ask us to wait at most; beyond it we give up."""


def compute_retry_delay(
    attempt: int, failure: ModelCallError, *, rng: random.Random | None = None
) -> float | None:
    """Return the seconds to wait before `attempt`, None to give up.

    `attempt` is the number of the next attempt: 2 after the first failure. The wait is
    at least what the server asks for, with jitter so that runs do not retry together.
    """
    if not failure.may_retry or attempt > MAX_ATTEMPTS:
        return None
    draw = (rng or random).random()
    most: float = min(BASE_DELAY * 2.0 ** (attempt - 2), MAX_DELAY)
    if failure.retry_after is None:
        return most * draw
    if failure.retry_after > MAX_RETRY_AFTER:
        return None
    return failure.retry_after + most * draw * 0.25
