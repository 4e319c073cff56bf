"""Changing several tools in the same way."""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from tools.definition.save import save_tool
from tools.models import Tool


def change_tools(
    tools: Iterable[Tool], *, by: User, note: str, **values: Any
) -> list[Tool]:
    """Give each tool the same values; each gets a revision and an audit entry."""
    changed = list(tools)
    with transaction.atomic():
        for tool in changed:
            for name, value in values.items():
                setattr(tool, name, value)
            save_tool(tool, by=by, note=note)
    return changed
