"""Trying a tool out: one call, through the same code as a run."""

import time
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from django.contrib.auth.models import User

from tools.audit.write import write_entry
from tools.errors import Interrupted, ToolFailed
from tools.kinds.registry import call_tool
from tools.kinds.values import text_of
from tools.models import Tool
from tools.safe_schema import first_fault
from tools.services.tool_may_run import tool_may_run
from tools.services.tool_spec_of import tool_spec_of
from tools.storable import storable
from tools.watch import Watch

TRY_SECONDS = 10.0
MAX_TEXT = 100_000
"""Characters of a result that the page shows."""


@dataclass(frozen=True)
class TryResult:
    """What came of one call."""

    value_text: str
    """The text a model would read; empty where it failed."""
    error: str
    """A sentence; empty where it worked."""
    seconds: float
    is_cut: bool = False

    @property
    def ok(self) -> bool:
        """Whether the call worked."""
        return not self.error


def try_tool(tool: Tool, tool_input: Any, *, by: User) -> TryResult:
    """Call `tool` once with `tool_input`, for at most ten seconds.

    A tool that is switched off may be tried by those who may change it; one that is
    archived, or whose owner has left, by nobody.
    """
    spec = tool_spec_of(tool)
    is_ours = Tool.objects.editable_by(by).filter(pk=tool.pk).exists()
    refused = tool_may_run(tool.pk, user=by, even_off=is_ours)
    if refused is None and spec.args_schema is not None:
        refused = first_fault(tool_input, spec.args_schema)
    if refused is not None:
        return TryResult("", refused, 0.0)
    write_entry("tried", "tool", tool, by=by, changes={"arguments": [None, tool_input]})
    began = time.perf_counter()
    value, error = None, ""
    try:
        value = call_tool(
            spec,
            tool_input,
            watch=Watch(seconds=TRY_SECONDS),
            idempotency_key=f"try:{token_hex(8)}",  # another try is another request
        )
    except (ToolFailed, Interrupted) as failed:
        error = storable(str(failed))
    took = time.perf_counter() - began
    text = "" if error else storable(text_of(value))
    return TryResult(text[:MAX_TEXT], error, took, is_cut=len(text) > MAX_TEXT)
