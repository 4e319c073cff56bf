"""Declining what an MCP server now says of one of its tools."""

from django.contrib.auth.models import User
from django.db import transaction

from tools.audit.write import write_entry
from tools.mcp_pin import McpPin
from tools.mcp_servers.accept_change import StaleMcpChange
from tools.models import Tool


def reject_mcp_change(tool: Tool, digest: str, *, by: User) -> None:
    """Leave the tool off and put away the definition with this `digest`.

    It is not told again until the server says something else, or somebody switches
    the tool on.
    """
    with transaction.atomic():
        tool = Tool.objects.select_for_update().get(pk=tool.pk)
        pin = McpPin.objects.filter(tool=tool).exclude(noticed_at=None).first()
        if pin is None or pin.offered is None or pin.digest != digest:
            raise StaleMcpChange
        pin.noticed_at = None
        pin.save()
        write_entry("kept off", "tool", tool, by=by, note="Its MCP server changed it")
