"""Makers of tools and calls for the tests of this folder."""

import threading
from typing import Any

from tools.kinds.registry import call_tool
from tools.net.deadline import Deadline
from tools.spec import ToolSpec


def call_builtin(module: str, function: str, **arguments: Any) -> Any:
    """Call a built-in function as a run does."""
    return call_path(f"tools.builtin.{module}:{function}", arguments)


def call_path(
    path: str,
    tool_input: Any = None,
    *,
    timeout: float = 60.0,
    seconds: float | None = None,
    flag: threading.Event | None = None,
    key: str = "",
) -> Any:
    """Call a registered function as a run does."""
    return call_tool(
        function_spec(path, timeout=timeout),
        tool_input,
        deadline=Deadline(seconds=seconds, flag=flag),
        idempotency_key=key,
        run_id=7,
    )


def function_spec(path: str, *, timeout: float = 60.0) -> ToolSpec:
    """Return the spec of a registered function."""
    return ToolSpec(name="f", config={"function": path}, timeout=timeout)
