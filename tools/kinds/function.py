"""Tools that are registered Python functions."""

import asyncio
import inspect
import json
import os
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from django.db import connections

from tools.credentials import OpenCredential, open_credential
from tools.errors import Interrupted, ToolCrashed, ToolFailed
from tools.kinds.call import PreparedCall
from tools.net.deadline import Deadline
from tools.registry import FunctionTool, ToolContext, find_function
from tools.sandbox.abandoned_calls import run_or_abandon
from tools.sandbox.environment import get_minimal_environment
from tools.sandbox.subprocess_protocol import (
    Program,
    parse_program_outcome,
    run_program,
)
from tools.sandbox.values import to_jsonable

MAX_PRINTED = 1 << 20
"""Bytes a function may print."""


class SecretUnsupported(ToolFailed):
    """The tool has a credential, and its function does not say it keeps to hosts."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"This tool has a credential, and its function {path!r} does not declare "
            "keeps_hosts=True, so nothing would keep the secret to the hosts it is "
            "bound to."
        )


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
    credential = call.spec.config.get("credential")
    if credential is None:
        return call_with_context(function, call, build_context(call, hosts))
    if not function.keeps_hosts:
        raise SecretUnsupported(function.path)
    opened = open_credential(
        credential, tool_id=call.spec.tool_id, owner_id=call.owner_id
    )
    context = build_context(call, opened.limit_hosts(hosts), opened)
    try:
        return opened.mask_secret_in(call_with_context(function, call, context))
    except ToolFailed as failed:
        masked = opened.mask_secret(str(failed))
        if masked == str(failed):
            raise
        raise ToolFailed(masked) from None  # the traceback would show the secret


def build_context(
    call: PreparedCall, hosts: tuple[str, ...], opened: OpenCredential | None = None
) -> ToolContext:
    """Return what the function may know; without the secret in its progress."""
    send = call.on_progress
    if send is not None and opened is not None:
        send = partial(send_masked, send, opened)
    return ToolContext(
        call.deadline,
        call.idempotency_key,
        call.run_id,
        hosts,
        call.user,
        opened.secret if opened else None,
        send,
    )


def send_masked(send: Callable[[str], None], opened: OpenCredential, text: str) -> None:
    send(opened.mask_secret(text))


def call_with_context(
    function: FunctionTool, call: PreparedCall, context: ToolContext
) -> Any:
    """Return the function's value; raise `ToolFailed` or `Interrupted`."""
    arguments = function.arguments.convert(call.tool_input)
    if function.isolated:
        call.deadline.note_slow()
        return call_in_process(function, call, context)
    if function.arguments.context is not None:
        arguments[function.arguments.context] = context
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


def call_in_process(
    function: FunctionTool, call: PreparedCall, context: ToolContext
) -> Any:
    """Return the value of one call; raise `ToolFailed` or `Interrupted`."""
    program = Program(
        [sys.executable, "-m", "tools.sandbox.isolated"],
        cwd=os.path.dirname(os.path.dirname(os.path.dirname(__file__))),
        env=get_minimal_environment(function.variables),
        max_printed=MAX_PRINTED,
    )
    return parse_program_outcome(
        run_program(
            program,
            encode_function_call(function, call, context),
            deadline=call.deadline,
            on_line=lambda line: context.report_progress(json.loads(line)),
        )
    )


def encode_function_call(
    function: FunctionTool, call: PreparedCall, context: ToolContext
) -> bytes:
    return json.dumps(
        {
            "function": function.path,
            "input": call.tool_input,
            "seconds": call.deadline.remaining() or call.spec.timeout,
            "key": call.idempotency_key,
            "run": call.run_id,
            "hosts": context.hosts,
            "user": context.user and [context.user.id, context.user.username],
            "secret": context.credential_secret,
            "parent": os.getpid(),
            "path": sys.path,
        }
    ).encode()
