"""When to try a failed model call again: full-jitter back-off that obeys the server."""

import random

from runs.llm.errors import ModelFailed

MAX_ATTEMPTS = 5
FIRST_WAIT = 1.0
LONGEST_WAIT = 30.0
LONGEST_ASKED = 3600.0
"""Seconds a server may ask us to wait; more is giving up."""


def wait_before(
    attempt: int, failure: ModelFailed, *, rng: random.Random | None = None
) -> float | None:
    """Return the seconds to wait before `attempt`, None to give up.

    `attempt` is the number of the next attempt: 2 after the first failure. A server's
    own wish is the least we wait, with a little jitter so that not all come at once.
    """
    if not failure.may_retry or attempt > MAX_ATTEMPTS:
        return None
    draw = (rng or random).random()
    most: float = min(FIRST_WAIT * 2.0 ** (attempt - 2), LONGEST_WAIT)
    if failure.retry_after is None:
        return most * draw
    if failure.retry_after > LONGEST_ASKED:
        return None
    return failure.retry_after + most * draw * 0.25
