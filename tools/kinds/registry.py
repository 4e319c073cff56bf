"""The kinds of tools, one line each, and `call_tool`."""

from collections.abc import Callable
from typing import Any

from tools.errors import DeadlineExceeded, ToolFailed, ToolTimedOut
from tools.kinds.call import KindFunction, PreparedCall
from tools.kinds.function import call_function
from tools.kinds.http import call_http
from tools.kinds.mcp import call_mcp
from tools.kinds.python import call_python
from tools.kinds.sql import call_sql
from tools.mcp_servers.sessions import McpSessions
from tools.net.deadline import Deadline
from tools.net.exchange_log import ExchangeLog
from tools.registry import ToolUser
from tools.sandbox.failed_frame import FrameReader
from tools.spec import ToolSpec

KINDS: dict[str, KindFunction] = {
    "function": call_function,
    "http": call_http,
    "mcp": call_mcp,
    "python": call_python,
    "sql": call_sql,
}
QUICK_KINDS = ("function", "python")
"""Kinds that report a slow call as such; all calls of the others count as slow."""


class UnknownKind(ToolFailed):
    """The tool is of a kind this version does not know."""

    def __init__(self, spec: ToolSpec) -> None:
        super().__init__(
            f"The tool {spec.name!r} is of the unknown kind {spec.kind!r}."
        )


def call_tool(
    spec: ToolSpec,
    tool_input: Any,
    *,
    deadline: Deadline,
    idempotency_key: str = "",
    run_id: int | None = None,
    mcp_sessions: McpSessions | None = None,
    user: ToolUser | None = None,
    on_progress: Callable[[str], None] | None = None,
    owner_id: int | None = None,
    exchange: ExchangeLog | None = None,
    on_print: Callable[[str], None] | None = None,
    on_failure: FrameReader | None = None,
) -> Any:
    """Make one call and return a JSON value, or a `MediaResult`.

    Raise `ToolFailed` with a sentence for the model, `Interrupted` if `deadline` ended
    it. The tool's own `timeout` is a `ToolTimedOut`: the run continues.
    """
    if spec.kind not in KINDS:
        raise UnknownKind(spec)
    left = deadline.remaining()
    seconds = spec.timeout if left is None else min(spec.timeout, left)
    if spec.kind not in QUICK_KINDS:
        deadline.note_slow()
    inner = Deadline(seconds=seconds, flag=deadline.flag, on_slow=deadline.on_slow)
    try:
        return KINDS[spec.kind](
            PreparedCall(
                spec,
                tool_input,
                inner,
                idempotency_key,
                run_id,
                mcp_sessions,
                user,
                on_progress,
                owner_id,
                exchange,
                on_print,
                on_failure,
            )
        )
    except DeadlineExceeded:
        deadline.check()
        raise ToolTimedOut(spec.timeout) from None
