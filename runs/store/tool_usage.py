"""Tool usage of this process, buffered until the next batch is written."""

import threading
from typing import NamedTuple


class ToolCallUsage(NamedTuple):
    tool_id: int
    failed: bool
    seconds: float
    error: str = ""


_lock = threading.Lock()
_pending: list[ToolCallUsage] = []


def add_tool_usage(use: ToolCallUsage) -> None:
    with _lock:
        _pending.append(use)


def drain_tool_usage() -> list[ToolCallUsage]:
    """Return the usage since the last batch and clear the buffer."""
    with _lock:
        taken = _pending[:]
        _pending.clear()
    return taken
