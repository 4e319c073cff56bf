"""One call inside its own process."""

import asyncio
import importlib
import inspect
from collections.abc import Callable
from typing import Any

from tools.errors import ToolCrashed, ToolFailed
from tools.net.deadline import Deadline
from tools.registry import ToolContext, ToolUser, find_function
from tools.sandbox.values import to_jsonable


def make_isolated_call(
    asked: dict[str, Any], send_progress: Callable[[str], None]
) -> dict[str, Any]:
    """Return `{"value": …}` or `{"error": sentence}`."""
    try:
        return {"value": call_declared_function(asked, send_progress)}
    except ToolFailed as failed:
        return {"error": str(failed)}
    except BaseException as error:  # noqa: BLE001  # foreign code may raise anything
        return {"error": str(ToolCrashed(error))}


def call_declared_function(
    asked: dict[str, Any], send_progress: Callable[[str], None]
) -> Any:
    """Import the function's module and call it."""
    importlib.import_module(asked["function"].partition(":")[0])
    function = find_function(asked["function"])
    arguments = function.arguments.convert(asked["input"])
    if function.arguments.context is not None:
        arguments[function.arguments.context] = ToolContext(
            Deadline(seconds=asked["seconds"]),
            asked["key"],
            asked["run"],
            tuple(asked["hosts"]),
            ToolUser(*asked["user"]) if asked["user"] else None,
            asked["secret"],
            send_progress,
        )
    value = function.function(**arguments)
    if inspect.iscoroutine(value):
        value = asyncio.run(value)
    return to_jsonable(value)
