"""Tests of the waits between attempts."""

import random

import pytest

from runs.llm.errors import ModelCallError
from runs.llm.retry import compute_retry_delay


class Always(random.Random):
    """A source that always draws the same number."""

    def __init__(self, drawn: float) -> None:
        super().__init__()
        self.drawn = drawn

    def random(self) -> float:
        """Return that number."""
        return self.drawn


def failure(**more: object) -> ModelCallError:
    fields: dict[str, object] = {"may_retry": True, **more}
    return ModelCallError("overloaded", "It is busy.", **fields)  # type: ignore[arg-type]  # forwards


@pytest.mark.parametrize(("attempt", "most"), [(2, 1), (3, 2), (4, 4), (5, 8)])
def test_the_wait_is_drawn_from_a_range_that_doubles(attempt, most):
    assert compute_retry_delay(attempt, failure(), rng=Always(0.0)) == 0
    assert compute_retry_delay(attempt, failure(), rng=Always(0.5)) == most / 2


def test_gives_up_after_five_attempts():
    assert compute_retry_delay(6, failure()) is None


def test_gives_up_at_once_if_a_retry_cannot_help():
    assert compute_retry_delay(2, failure(may_retry=False)) is None


def test_waits_at_least_as_long_as_the_server_asked():
    assert compute_retry_delay(2, failure(retry_after=7.0), rng=Always(0.0)) == 7
    assert (
        7 < (compute_retry_delay(2, failure(retry_after=7.0), rng=Always(1.0)) or 0) < 8
    )


def test_gives_up_if_the_server_asks_for_hours():
    assert compute_retry_delay(2, failure(retry_after=7200.0)) is None
