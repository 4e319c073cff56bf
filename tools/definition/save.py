"""Saving, changing and copying tools together with their revisions."""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import Max

from tools.audit.tracking import record_created_rows
from tools.models import Tool, ToolRevision
from tools.ownership import Visibility, free_slugs

DEFINITION_FIELDS = (
    *("name", "slug", "description", "kind", "config", "args_schema", "return_direct"),
    *("effect", "approval", "on_error", "timeout", "retries", "calls_per_run"),
    *("output_limit", "hosts", "enabled", "visibility", "approval_hours", "at_expiry"),
    "second_person",
)
"""Fields of a definition that a revision keeps."""


def save_tool(
    tool: Tool,
    *,
    by: User | None,
    note: str = "",
    groups: Iterable[Group] | None = None,
) -> Tool:
    """Store `tool`, and a revision if its definition changed.

    `groups` are those that it is shared with; None leaves them as they are.
    """
    with transaction.atomic():
        tool.save()
        if groups is not None:
            tool.groups.set(groups)
        body = serialize_definition(tool)
        newest = tool.revisions.order_by("-number").first()
        if newest is not None and newest.body == body:
            return tool
        highest = tool.revisions.aggregate(n=Max("number"))["n"] or 0
        tool.revision = highest + 1
        tool.save(update_fields=["revision"])
        ToolRevision.objects.create(
            tool=tool, number=tool.revision, body=body, note=note[:200], by=by
        )
    return tool


def save_new_tools(tools: list[Tool], *, by: User | None, note: str = "") -> list[Tool]:
    """Store tools that are all new, each with its first revision and audit entry."""
    slugs = free_slugs(Tool, [tool.name for tool in tools])
    for tool, slug in zip(tools, slugs, strict=True):
        tool.slug = slug
    with transaction.atomic():
        Tool.objects.bulk_create(tools)
        ToolRevision.objects.bulk_create(
            ToolRevision(
                tool=tool,
                number=1,
                body=serialize_definition(tool),
                note=note[:200],
                by=by,
            )
            for tool in tools
        )
        record_created_rows(Tool, tools)
    return tools


def serialize_definition(tool: Tool) -> dict[str, Any]:
    """Return all fields of the definition as JSON; secrets are references."""
    body: dict[str, Any] = {name: getattr(tool, name) for name in DEFINITION_FIELDS}
    body["approvers"] = tool.approvers_id
    body["credential"] = tool.credential_id
    body["mcp_server"] = tool.mcp_server_id
    return body


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


def duplicate_tool(tool: Tool, *, by: User) -> Tool:
    """Return a copy that belongs to `by`, is private and disabled."""
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
