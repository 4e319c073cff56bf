"""Copying a tool."""

from django.contrib.auth.models import User

from tools.definition.save import save_tool
from tools.models import Tool
from tools.ownership import Visibility


def duplicate_tool(tool: Tool, *, by: User) -> Tool:
    """Return a copy that belongs to `by`, is private and switched off."""
    fields = {
        field.attname: getattr(tool, field.attname)
        for field in Tool._meta.concrete_fields
        if field.name not in NOT_COPIED
    }
    copy = Tool(
        **fields,
        name=f"{tool.name[:59]}_copy",
        owner=by,
        visibility=Visibility.PRIVATE,
        enabled=False,
    )
    return save_tool(copy, by=by, note=f"Copy of {tool.slug}, revision {tool.revision}")


NOT_COPIED = frozenset(
    {
        *("id", "slug", "name", "owner", "visibility", "enabled", "revision"),
        *("archived_at", "created_at", "updated_at", "last_error", "last_used_at"),
    }
)
"""Fields that a copy does not take over."""
