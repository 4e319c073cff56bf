"""What every kind is given for one call."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tools.spec import ToolSpec
from tools.watch import Watch


@dataclass(frozen=True)
class Call:
    """One call of one tool."""

    spec: ToolSpec
    tool_input: Any
    """A text, or an argument object."""
    watch: Watch
    """Ends with the tool's time or the run's, whichever is sooner."""
    idempotency_key: str = ""
    run_id: int | None = None


Kind = Callable[[Call], Any]
"""Makes the call; returns a JSON value, raises `ToolFailed` or `Interrupted`."""
