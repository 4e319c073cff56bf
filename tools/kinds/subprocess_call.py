"""Running a function in a process of its own, and ending it from outside."""

import json
import os
import sys
from typing import Any

from tools.kinds.call import PreparedCall
from tools.registry import FunctionTool, ToolContext
from tools.sandbox.environment import get_minimal_environment
from tools.sandbox.subprocess_protocol import (
    Program,
    parse_program_outcome,
    run_program,
)

MAX_PRINTED = 1 << 20
"""Bytes a function may print."""


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
    """Return the call as the process reads it."""
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
