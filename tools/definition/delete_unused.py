"""Deleting a credential or an MCP server that nothing refers to."""

from django.contrib.auth.models import User
from django.db import transaction

from tools.definition.save import save_tool
from tools.models import Credential, McpServer, Tool


def delete_unused(thing: Credential | McpServer, *, by: User) -> None:
    """Delete it; tools of the archive are left without it.

    Raise `ProtectedError` where something else refers to it.
    """
    name = "credential" if isinstance(thing, Credential) else "mcp_server"
    with transaction.atomic():
        for tool in Tool.objects.filter(**{name: thing}).exclude(archived_at=None):
            setattr(tool, name, None)
            noun = thing._meta.verbose_name
            save_tool(tool, by=by, note=f"Its {noun} {thing} was deleted")
        thing.delete()


def find_referrers(thing: Credential | McpServer) -> list[Tool | McpServer]:
    """Return the tools and servers that could not be called without it."""
    if isinstance(thing, McpServer):
        return list(thing.tool_set.filter(archived_at=None).order_by("name"))
    return [
        *thing.tool_set.filter(archived_at=None).order_by("name"),
        *thing.mcpserver_set.order_by("name"),
    ]
