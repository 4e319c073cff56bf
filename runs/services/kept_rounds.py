"""Rounds told for one page, kept in memory for the next page of the same long run.

Whoever reads a late step looks at its neighbours and its other tabs next. Nothing here
is trusted: what is built from kept rounds is shown only where the stored digest agrees.
"""

from threading import Lock
from typing import NamedTuple

from runs.engine.rounds import Rounds
from runs.models import ModelCall

MOST_RUNS = 3
FEWEST = 50
"""Rounds of a run that are worth keeping; fewer are told at once."""
MOST_BYTES = 6_000_000
"""Of the messages of one run; in memory they take about three times that."""


class KeptRounds(NamedTuple):
    """A run's rounds after its first `begin`, as many as were told so far."""

    rounds: Rounds
    begin: int


_kept: dict[tuple[int, int], KeptRounds] = {}
_lock = Lock()


def take_rounds(call: ModelCall) -> KeptRounds | None:
    """Return what is kept of the call's run, which is then the caller's alone."""
    with _lock:
        return _kept.pop(_key_of(call), None)


def keep_rounds(call: ModelCall, told: KeptRounds, *, size: int) -> None:
    """Keep rounds that nobody goes on with now, and forget the oldest of others.

    `size` is in bytes, of the messages that `call` sent.
    """
    if told.rounds.progress.rounds < FEWEST or size > MOST_BYTES:
        return
    with _lock:
        _kept[_key_of(call)] = told
        while len(_kept) > MOST_RUNS:
            del _kept[next(iter(_kept))]


def _key_of(call: ModelCall) -> tuple[int, int]:
    is_other = call.is_copied and call.spec_id is not None
    return call.run_id, (call.spec_id if is_other else None) or call.run.spec_id
