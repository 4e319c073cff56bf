"""Tools that are registered Python functions."""

import asyncio
import inspect
from collections.abc import Coroutine
from typing import Any

from django.db import connections

from tools.errors import Interrupted, ToolCrashed, ToolFailed
from tools.kinds.call import PreparedCall
from tools.kinds.subprocess_call import call_in_process
from tools.net.deadline import Deadline
from tools.registry import FunctionTool, ToolContext, find_function
from tools.sandbox.abandoned_calls import run_or_abandon
from tools.sandbox.values import to_jsonable


class HostLimitUnsupported(ToolFailed):
    """The tool is limited to hosts, and its function does not say it keeps to them."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"This tool is limited to some hosts, and its function {path!r} does not "
            "declare keeps_hosts=True, so nothing would hold it to them."
        )


def call_function(call: PreparedCall) -> Any:
    """Run the function; a deadline or Stop leaves it behind in its thread."""
    function = find_function(str(call.spec.config.get("function", "")))
    hosts = tuple(call.spec.config.get("hosts", ()))
    if hosts and not function.keeps_hosts:
        raise HostLimitUnsupported(function.path)
    arguments = function.arguments.convert(call.tool_input)
    if function.isolated:
        return call_in_process(function, call)
    if function.arguments.context is not None:
        arguments[function.arguments.context] = ToolContext(
            call.deadline,
            call.idempotency_key,
            call.run_id,
            hosts,
        )
    try:
        return run_or_abandon(
            lambda: run_function(function, arguments, call.deadline), call.deadline
        )
    except (ToolFailed, Interrupted):
        raise
    except BaseException as error:  # foreign code may raise anything
        raise ToolCrashed(error) from error


def run_function(
    function: FunctionTool, arguments: dict[str, Any], deadline: Deadline
) -> Any:
    """Run in the calling thread and return a JSON value."""
    try:
        value = function.function(**arguments)
        if inspect.iscoroutine(value):
            value = asyncio.run(run_until_canceled(deadline, value))
        return to_jsonable(value)
    finally:
        for connection in connections.all(initialized_only=True):
            connection.close()


async def run_until_canceled(deadline: Deadline, work: Coroutine[Any, Any, Any]) -> Any:
    """Return what `work` returns; cancel it when `deadline` says so."""
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.wait([task], timeout=max(deadline.next_wait(), 0.001))
        if not task.done() and (deadline.flag.is_set() or deadline.remaining() == 0.0):
            task.cancel()
            await asyncio.wait([task], timeout=1)
            deadline.check()
    return task.result()
