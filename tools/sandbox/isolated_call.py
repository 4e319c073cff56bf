"""One call inside its own process."""

import asyncio
import importlib
import inspect
from typing import Any

from tools.errors import ToolBroke, ToolFailed
from tools.kinds.values import jsonable
from tools.registry import ToolContext, find_function
from tools.watch import Watch


def make_call(asked: dict[str, Any]) -> dict[str, Any]:
    """Return `{"value": …}` or `{"error": sentence}`."""
    try:
        return {"value": value_of(asked)}
    except ToolFailed as failed:
        return {"error": str(failed)}
    except BaseException as error:  # noqa: BLE001  # foreign code may raise anything
        return {"error": str(ToolBroke(error))}


def value_of(asked: dict[str, Any]) -> Any:
    """Import the function's module and call it."""
    importlib.import_module(asked["function"].partition(":")[0])
    function = find_function(asked["function"])
    arguments = function.arguments.convert(asked["input"])
    if function.arguments.context is not None:
        arguments[function.arguments.context] = ToolContext(
            Watch(seconds=asked["seconds"]),
            asked["key"],
            asked["run"],
            tuple(asked["hosts"]),
        )
    value = function.function(**arguments)
    if inspect.iscoroutine(value):
        value = asyncio.run(value)
    return jsonable(value)
