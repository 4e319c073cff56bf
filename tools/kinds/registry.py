"""The kinds of tools, one line each, and `call_tool`."""

from typing import Any

from tools.errors import DeadlinePassed, ToolFailed, ToolOutOfTime
from tools.kinds.call import Call, Kind
from tools.kinds.function import call_function
from tools.kinds.http import call_http
from tools.kinds.mcp import call_mcp
from tools.kinds.python import call_python
from tools.kinds.sql import call_sql
from tools.spec import ToolSpec
from tools.watch import Watch

KINDS: dict[str, Kind] = {
    "function": call_function,
    "http": call_http,
    "mcp": call_mcp,
    "python": call_python,
    "sql": call_sql,
}


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
    watch: Watch,
    idempotency_key: str = "",
    run_id: int | None = None,
) -> Any:
    """Make one call and return a JSON value.

    Raise `ToolFailed` with a sentence for the model, `Interrupted` where `watch` ended
    it. The tool's own `timeout` is a `ToolOutOfTime`: the run goes on.
    """
    if spec.kind not in KINDS:
        raise UnknownKind(spec)
    left = watch.left()
    seconds = spec.timeout if left is None else min(spec.timeout, left)
    inner = Watch(seconds=seconds, flag=watch.flag)
    try:
        return KINDS[spec.kind](Call(spec, tool_input, inner, idempotency_key, run_id))
    except DeadlinePassed:
        watch.check()
        raise ToolOutOfTime(spec.timeout) from None
