"""Running a function in a process of its own, and ending it from outside."""

import json
import os
import sys
from typing import Any

from tools.kinds.call import Call
from tools.kinds.subprocess_talk import Program, outcome_of, value_in
from tools.registry import FunctionTool

MAX_PRINTED = 1 << 20
"""Bytes a function may print."""

SECRETS = (
    *("SECRET_KEY", "DATABASE_URL", "REDIS_URL", "AGENTSITE_ENCRYPTION_KEYS"),
    *("AGENTSITE_WEB_SEARCH_KEY", "AGENTSITE_MCP_COMMANDS"),
    "AGENTSITE_SQL_CONNECTIONS",
)
"""Variables of the installation that no function needs."""


def call_in_process(function: FunctionTool, call: Call) -> Any:
    """Return the value of one call; raise `ToolFailed` or `Interrupted`."""
    program = Program(
        [sys.executable, "-m", "tools.kinds.isolated"],
        cwd=os.path.dirname(os.path.dirname(os.path.dirname(__file__))),
        env={key: text for key, text in os.environ.items() if key not in SECRETS},
        max_printed=MAX_PRINTED,
    )
    return value_in(outcome_of(program, asked_of(function, call), watch=call.watch))


def asked_of(function: FunctionTool, call: Call) -> bytes:
    """Return the call as the process reads it."""
    return json.dumps(
        {
            "function": function.path,
            "input": call.tool_input,
            "seconds": call.watch.left() or call.spec.timeout,
            "key": call.idempotency_key,
            "run": call.run_id,
            "hosts": call.spec.config.get("hosts", ()),
            "parent": os.getpid(),
            "path": sys.path,
        }
    ).encode()
