"""Running a function in a process of its own, and ending it from outside."""

import json
import os
import sys
from typing import Any

from tools.kinds.call import PreparedCall
from tools.registry import FunctionTool
from tools.sandbox.environment import get_minimal_environment
from tools.sandbox.subprocess_protocol import (
    Program,
    parse_program_outcome,
    run_program,
)

MAX_PRINTED = 1 << 20
"""Bytes a function may print."""


def call_in_process(function: FunctionTool, call: PreparedCall) -> Any:
    """Return the value of one call; raise `ToolFailed` or `Interrupted`."""
    program = Program(
        [sys.executable, "-m", "tools.sandbox.isolated"],
        cwd=os.path.dirname(os.path.dirname(os.path.dirname(__file__))),
        env=get_minimal_environment(function.variables),
        max_printed=MAX_PRINTED,
    )
    return parse_program_outcome(
        run_program(
            program, encode_function_call(function, call), deadline=call.deadline
        )
    )


def encode_function_call(function: FunctionTool, call: PreparedCall) -> bytes:
    """Return the call as the process reads it."""
    return json.dumps(
        {
            "function": function.path,
            "input": call.tool_input,
            "seconds": call.deadline.remaining() or call.spec.timeout,
            "key": call.idempotency_key,
            "run": call.run_id,
            "hosts": call.spec.config.get("hosts", ()),
            "parent": os.getpid(),
            "path": sys.path,
        }
    ).encode()
