"""Looking, at the time of a call, whether a tool may still be used."""

from typing import NamedTuple

from django.contrib.auth.models import User

from tools.models import Tool
from tools.statement import execute_statement

STATE_QUERY = """
    SELECT tool.name, tool.archived_at IS NOT NULL, tool.enabled,
        owner.is_active, tool.owner_id
    FROM tools_tool tool JOIN auth_user owner ON owner.id = tool.owner_id
    WHERE tool.id = %s
"""


class _ToolState(NamedTuple):
    name: str
    is_archived: bool
    is_enabled: bool
    is_owner_active: bool
    owner_id: int


def find_tool_block(
    tool_id: int, *, user: User | None = None, even_off: bool = False
) -> str | None:
    """Return why a call is no longer allowed, or None.

    `user` is the agent's owner, who gave the tool to the agent. `even_off` is for
    trying out a disabled tool.
    """
    tool = _load_tool_state(tool_id)
    if tool is None:
        return "This tool no longer exists."
    if tool.is_archived:
        return f"The tool {tool.name!r} was archived."
    if not tool.is_enabled and not even_off:
        return f"The tool {tool.name!r} is disabled."
    if not tool.is_owner_active:
        return f"The owner of the tool {tool.name!r} no longer has access."
    if user is not None and not _is_usable(tool_id, user, owner_id=tool.owner_id):
        return f"The owner of this agent may no longer use the tool {tool.name!r}."
    return None


def _load_tool_state(tool_id: int) -> _ToolState | None:
    """Return what is asked for each run, in plain SQL (docs/decisions/0007)."""
    row = execute_statement(STATE_QUERY, [tool_id]).row
    return _ToolState(*row) if row else None


def _is_usable(tool_id: int, user: User, *, owner_id: int) -> bool:
    """Whether `user` may use the tool; one's own needs no look at groups."""
    if user.is_superuser or owner_id == user.pk:
        return True
    return Tool.objects.usable_by(user).filter(pk=tool_id).exists()
