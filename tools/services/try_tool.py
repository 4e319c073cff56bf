"""Trying a tool out: one call, through the same code as a run, and its record."""

import json
import threading
import time
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from tools.audit.masking import mask_json_value
from tools.audit.write import write_entry
from tools.definition.freeze import freeze_tool, is_approval_enforced
from tools.definition.permission import find_tool_block
from tools.errors import CallCanceled, Interrupted, ToolFailed
from tools.kinds.python import find_error_line
from tools.kinds.registry import call_tool
from tools.media import MediaResult
from tools.models import Tool, ToolTrial
from tools.net.deadline import Deadline
from tools.net.exchange_log import ExchangeLog
from tools.registry import ToolUser
from tools.sandbox.failed_frame import FailedFrame
from tools.sandbox.values import format_tool_value
from tools.schema.safe_schema import find_first_schema_error
from tools.services.mask_variables import mask_frame
from tools.spec import ToolSpec
from tools.text.storable import replace_unstorable
from tools.text.translatable import translatable

TRY_SECONDS = 10.0
MAX_SHOWN_TEXT = 100_000
"""Characters of a result that pages and the API show."""
STOPPED = translatable("You stopped the call.")
NOT_YOURS = translatable(
    "Only people who can edit the tool can test values that are not saved."
)
NEEDS_APPROVAL = translatable(
    "Each call of this tool requires an approval, so only people who can edit it can "
    "test it."
)

KEPT_TRIALS = 20
"""Of one person and one tool."""
MAX_ARGUMENTS = 20_000
"""Characters of arguments, as JSON, that are kept."""


@dataclass(frozen=True)
class TryResult:
    value_text: str
    """The text a model would read; empty if it failed."""
    error: str
    """A sentence; empty if it worked."""
    seconds: float
    exchange: ExchangeLog = field(default_factory=ExchangeLog)
    """What was received over HTTP, of tools that are one request."""
    error_line: int | None = None
    """The line of the code that failed, of Python tools."""
    is_structured: bool = False
    """Whether the value is a list or an object, which `value_text` has as JSON."""
    printed: str = ""
    """What Python code printed."""
    is_stopped: bool = False
    """Whether the person stopped the call."""
    frame: FailedFrame | None = None
    """The variables where Python code failed, masked."""

    @property
    def shown_text(self) -> str:
        return self.value_text[:MAX_SHOWN_TEXT]

    @property
    def is_cut(self) -> bool:
        return len(self.value_text) > MAX_SHOWN_TEXT

    @property
    def ok(self) -> bool:
        return not self.error


def try_tool(
    tool: Tool,
    tool_input: Any,
    *,
    by: User,
    is_unsaved: bool = False,
    draft: str = "",
    stop: threading.Event | None = None,
) -> TryResult:
    """Call `tool` once with `tool_input`, for at most ten seconds or until `stop`.

    A tool that is disabled, or whose calls must be approved whatever its agents say,
    may be tried by those who may change it; one that is archived, or whose owner has
    left, by nobody. `is_unsaved` says that the values of `tool` differ from the stored
    ones, or that it is not stored at all: then the audit log keeps them, since no
    revision does. `draft` names the form of a tool that is not stored; without it, such
    a call is not among the earlier ones.
    """
    spec = freeze_tool(tool)
    refused = find_refusal(tool, spec, tool_input, by=by, is_unsaved=is_unsaved)
    if refused is not None:
        return TryResult("", refused, 0.0)
    definition = {"kind": spec.kind, "effect": spec.effect, "config": spec.config}
    unsaved = {"unsaved definition": [None, definition]} if is_unsaved else {}
    write_entry(
        "tried",
        "tool",
        tool,
        by=by,
        changes={"arguments": [None, tool_input], **unsaved},
    )
    result = call_for_result(spec, tool_input, by=by, stop=stop)
    if tool.pk is not None or draft:
        record_trial(
            tool,
            tool_input,
            by=by,
            draft=draft,
            is_unsaved=is_unsaved,
            is_ok=result.ok,
            seconds=result.seconds,
            http_status=result.exchange.status,
            error_line=result.error_line,
            is_stopped=result.is_stopped,
        )
    return result


def find_refusal(
    tool: Tool, spec: ToolSpec, tool_input: Any, *, by: User, is_unsaved: bool
) -> str | None:
    """Return why the call is not made, or None."""
    refused = None
    if tool.pk is not None:
        is_ours = Tool.objects.editable_by(by).filter(pk=tool.pk).exists()
        refused = find_tool_block(tool.pk, user=by, even_off=is_ours)
        if is_unsaved and not is_ours:
            refused = NOT_YOURS
        if not is_ours and is_approval_enforced(tool, effect=spec.effect):
            refused = refused or NEEDS_APPROVAL
    if refused is None and spec.args_schema is not None:
        refused = find_first_schema_error(tool_input, spec.args_schema)
    return refused


def call_for_result(
    spec: ToolSpec, tool_input: Any, *, by: User, stop: threading.Event | None
) -> TryResult:
    began, exchange = time.perf_counter(), ExchangeLog()
    printed: list[str] = []
    frames: list[FailedFrame] = []
    value, is_stopped = None, False
    error: str = ""
    try:
        value = call_tool(
            spec,
            tool_input,
            deadline=Deadline(seconds=TRY_SECONDS, flag=stop),
            idempotency_key=f"try:{token_hex(8)}",  # another try is another request
            user=ToolUser(by.pk, by.get_username()),
            owner_id=by.pk,
            exchange=exchange,
            on_print=printed.append,
            on_failure=frames.append,
        )
        if isinstance(value, MediaResult):
            value = value.value
    except CallCanceled:
        error, is_stopped = STOPPED, True
    except (ToolFailed, Interrupted) as failed:
        error = replace_unstorable(str(failed))
    took = time.perf_counter() - began
    text = "" if error else replace_unstorable(format_tool_value(value))
    return TryResult(
        text,
        error,
        took,
        exchange=exchange,
        error_line=find_error_line(error) if spec.kind == "python" else None,
        is_structured=isinstance(value, dict | list),
        printed=replace_unstorable("".join(printed)),
        is_stopped=is_stopped,
        frame=mask_frame(frames[-1], tool_input) if frames and error else None,
    )


def record_trial(
    tool: Tool,
    tool_input: Any,
    *,
    by: User,
    draft: str,
    is_unsaved: bool,
    is_ok: bool,
    seconds: float,
    http_status: int | None,
    error_line: int | None,
    is_stopped: bool = False,
) -> ToolTrial:
    """Store a call, and delete what is older than the last twenty."""
    stored = tool if tool.pk is not None else None
    with transaction.atomic():
        trial = ToolTrial.objects.create(
            tool=stored,
            draft=draft,
            by=by,
            arguments=find_kept_arguments(tool_input),
            revision=tool.revision,
            is_unsaved=is_unsaved,
            is_ok=is_ok,
            http_status=http_status,
            error_line=error_line,
            is_stopped=is_stopped,
            seconds=seconds,
        )
        mine = ToolTrial.objects.filter(tool=stored, by=by).order_by("-at", "-pk")
        old = list(mine.values_list("pk", flat=True)[KEPT_TRIALS:])
        ToolTrial.objects.filter(pk__in=old).delete()
    return trial


def assign_trials(tool: Tool, draft: str, *, by: User) -> None:
    """Make the calls from the form of a tool those of the tool that was created."""
    if draft:
        trials = ToolTrial.objects.filter(tool=None, draft=draft, by=by)
        trials.update(tool=tool, draft="")


def find_kept_arguments(tool_input: Any) -> Any:
    """Return the arguments without secrets; None if they are too long."""
    kept = mask_json_value(tool_input, cuts=False)
    try:
        is_short = len(json.dumps(kept, allow_nan=False)) <= MAX_ARGUMENTS
    except (ValueError, RecursionError):
        return None
    return kept if is_short else None
