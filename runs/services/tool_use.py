"""How tools were used in this process, on its way to the database in batches."""

import threading
from typing import NamedTuple


class Use(NamedTuple):
    """One call of a tool."""

    tool_id: int
    failed: bool
    seconds: float
    error: str = ""


_lock = threading.Lock()
_uses: list[Use] = []


def note_use(use: Use) -> None:
    """Remember one call until the next batch is written."""
    with _lock:
        _uses.append(use)


def take_uses() -> list[Use]:
    """Return and forget what was noted since the last batch."""
    with _lock:
        taken = _uses[:]
        _uses.clear()
    return taken
