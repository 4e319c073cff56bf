"""Tools that are registered Python functions."""

import asyncio
import inspect
from collections.abc import Coroutine
from typing import Any

from django.db import connections

from tools.errors import Interrupted, ToolBroke, ToolFailed
from tools.kinds.call import Call
from tools.kinds.left_behind import run_or_leave
from tools.kinds.subprocess_call import call_in_process
from tools.kinds.values import jsonable
from tools.registry import FunctionTool, ToolContext, find_function
from tools.watch import Watch


class HostsNotKept(ToolFailed):
    """The tool is limited to hosts, and its function does not say it keeps to them."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"This tool is limited to some hosts, and its function {path!r} does not "
            "declare keeps_hosts=True, so nothing would hold it to them."
        )


def call_function(call: Call) -> Any:
    """Run the function; a deadline or Stop leaves it behind in its thread."""
    function = find_function(str(call.spec.config.get("function", "")))
    hosts = tuple(call.spec.config.get("hosts", ()))
    if hosts and not function.keeps_hosts:
        raise HostsNotKept(function.path)
    arguments = function.arguments.convert(call.tool_input)
    if function.isolated:
        return call_in_process(function, call)
    if function.arguments.context is not None:
        arguments[function.arguments.context] = ToolContext(
            call.watch,
            call.idempotency_key,
            call.run_id,
            hosts,
        )
    try:
        return run_or_leave(
            lambda: run_function(function, arguments, call.watch), call.watch
        )
    except (ToolFailed, Interrupted):
        raise
    except BaseException as error:  # foreign code may raise anything
        raise ToolBroke(error) from error


def run_function(
    function: FunctionTool, arguments: dict[str, Any], watch: Watch
) -> Any:
    """Run in the calling thread and return a JSON value."""
    try:
        value = function.function(**arguments)
        if inspect.iscoroutine(value):
            value = asyncio.run(cancelled_with(watch, value))
        return jsonable(value)
    finally:
        for connection in connections.all(initialized_only=True):
            connection.close()


async def cancelled_with(watch: Watch, work: Coroutine[Any, Any, Any]) -> Any:
    """Return what `work` returns; cancel it when `watch` says so."""
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.wait([task], timeout=max(watch.slice(), 0.001))
        if not task.done() and (watch.flag.is_set() or watch.left() == 0.0):
            task.cancel()
            await asyncio.wait([task], timeout=1)
            watch.check()
    return task.result()
