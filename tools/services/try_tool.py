"""Trying a tool out: one call, through the same code as a run."""

import time
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from django.contrib.auth.models import User

from tools.audit.write import write_entry
from tools.definition.freeze import freeze_tool
from tools.definition.permission import find_tool_block
from tools.errors import Interrupted, ToolFailed
from tools.kinds.registry import call_tool
from tools.media import MediaResult
from tools.models import Tool
from tools.net.deadline import Deadline
from tools.registry import ToolUser
from tools.sandbox.values import format_tool_value
from tools.schema.safe_schema import find_first_schema_error
from tools.text.storable import replace_unstorable

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
    spec = freeze_tool(tool)
    is_ours = Tool.objects.editable_by(by).filter(pk=tool.pk).exists()
    refused = find_tool_block(tool.pk, user=by, even_off=is_ours)
    if refused is None and spec.args_schema is not None:
        refused = find_first_schema_error(tool_input, spec.args_schema)
    if refused is not None:
        return TryResult("", refused, 0.0)
    write_entry("tried", "tool", tool, by=by, changes={"arguments": [None, tool_input]})
    began = time.perf_counter()
    value, error = None, ""
    try:
        value = call_tool(
            spec,
            tool_input,
            deadline=Deadline(seconds=TRY_SECONDS),
            idempotency_key=f"try:{token_hex(8)}",  # another try is another request
            user=ToolUser(by.pk, by.get_username()),
        )
        if isinstance(value, MediaResult):
            value = value.value
    except (ToolFailed, Interrupted) as failed:
        error = replace_unstorable(str(failed))
    took = time.perf_counter() - began
    text = "" if error else replace_unstorable(format_tool_value(value))
    return TryResult(text[:MAX_TEXT], error, took, is_cut=len(text) > MAX_TEXT)
