"""Keeping the last calls that a person made from the page of a tool."""

import json
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from tools.audit.masking import mask_json_value
from tools.models import Tool, ToolTrial

KEPT_TRIALS = 20
"""Of one person and one tool."""
MAX_ARGUMENTS = 20_000
"""Characters of arguments, as JSON, that are kept."""


def record_trial(
    tool: Tool,
    tool_input: Any,
    *,
    by: User,
    is_unsaved: bool,
    is_ok: bool,
    seconds: float,
    http_status: int | None,
    error_line: int | None,
    is_stopped: bool = False,
) -> ToolTrial:
    """Store a call, and delete what is older than the last twenty."""
    with transaction.atomic():
        trial = ToolTrial.objects.create(
            tool=tool,
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
        mine = ToolTrial.objects.filter(tool=tool, by=by).order_by("-at", "-pk")
        old = list(mine.values_list("pk", flat=True)[KEPT_TRIALS:])
        ToolTrial.objects.filter(pk__in=old).delete()
    return trial


def find_kept_arguments(tool_input: Any) -> Any:
    """Return the arguments without secrets; None if they are too long."""
    kept = mask_json_value(tool_input, cuts=False)
    try:
        is_short = len(json.dumps(kept, allow_nan=False)) <= MAX_ARGUMENTS
    except (ValueError, RecursionError):
        return None
    return kept if is_short else None
