"""Waiting for a condition; how long things take belongs to tests/bench."""

import time
from collections.abc import Callable


def wait_until(
    true: Callable[[], object],
    *,
    seconds: float = 120,
    message: Callable[[], str] = str,
) -> None:
    """Look again and again until `true`.

    After `seconds` raise `AssertionError`, which ends with what `message` returns then.
    """
    until = time.monotonic() + seconds
    while not true():
        late = time.monotonic() >= until
        assert not late, f"It did not happen within {seconds:g} s. {message()}"
        time.sleep(0.02)
