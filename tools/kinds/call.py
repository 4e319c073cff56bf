"""What every kind is given for one call."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tools.mcp_servers.sessions import McpSessions
from tools.net.deadline import Deadline
from tools.net.exchange_log import ExchangeLog
from tools.registry import ToolUser
from tools.sandbox.failed_frame import FrameReader
from tools.spec import ToolSpec


@dataclass(frozen=True)
class PreparedCall:
    spec: ToolSpec
    tool_input: Any
    """A text, or an argument object."""
    deadline: Deadline
    """Ends with the tool's time or the run's, whichever is sooner."""
    idempotency_key: str = ""
    run_id: int | None = None
    mcp_sessions: McpSessions | None = None
    """Those of the run; None for a session of this call alone."""
    user: ToolUser | None = None
    on_progress: Callable[[str], None] | None = None
    """Receives what a function reports while it runs, without the tool's secret."""
    owner_id: int | None = None
    """Whose tool it is, of a definition that is not stored and has no `tool_id`."""
    exchange: ExchangeLog | None = None
    """Receives the HTTP response, for a person who tests the tool."""
    on_print: Callable[[str], None] | None = None
    """Receives what Python code prints, in pieces."""
    on_failure: FrameReader | None = None
    """Receives the variables of Python code that fails, for a person who tests it."""


KindFunction = Callable[[PreparedCall], Any]
"""Makes the call; returns a JSON value or a `MediaResult`.

Raises `ToolFailed` or `Interrupted`.
"""
