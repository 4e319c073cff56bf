"""Waiting, and limits of time that hold on a busy machine too.

A busy machine delays one try, a fault delays every one: a test that measures time says
`assert_quick` and is allowed some tries. Anything else that is wrong fails at once.
"""

import functools
import time
from collections.abc import Callable
from typing import Any, ParamSpec

P = ParamSpec("P")


def wait_until(
    true: Callable[[], object],
    *,
    seconds: float = 30,
    told: Callable[[], str] = str,
) -> None:
    """Look again and again until `true`.

    After `seconds` raise `AssertionError`, which ends with what `told` returns then.
    """
    until = time.monotonic() + seconds
    while not true():
        late = time.monotonic() >= until
        assert not late, f"It did not happen within {seconds:g} s. {told()}"
        time.sleep(0.02)


class TooSlow(AssertionError):
    """Something took longer than it may."""

    def __init__(self, took: float, limit: float) -> None:
        super().__init__(f"It took {took:.4f} s and may take {limit:.4f} s.")


def assert_quick(took: float, limit: float) -> None:
    """Raise `TooSlow` where `took` is not under `limit`; both in seconds."""
    if took >= limit:
        raise TooSlow(took, limit)


def tries(times: int) -> Callable[[Callable[P, Any]], Callable[P, None]]:
    """Do a test again, at most `times` times in all, where it was too slow."""

    def decorated(test: Callable[P, Any]) -> Callable[P, None]:
        @functools.wraps(test)
        def tried(*args: P.args, **kwargs: P.kwargs) -> None:
            for _ in range(times - 1):
                try:
                    return test(*args, **kwargs)
                except TooSlow:
                    continue
            return test(*args, **kwargs)

        return tried

    return decorated
