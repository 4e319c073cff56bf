"""Switching a tool off because its MCP server says something else of it."""

from django.db import transaction
from django.utils import timezone

from tools.credentials import temporary_db_connection
from tools.definition.save import save_tool
from tools.mcp_offer import Offer
from tools.mcp_pin import McpPin
from tools.models import Tool


def record_mcp_change(tool_id: int | None, offer: Offer) -> bool:
    """Keep `offer` for a person to look at; False where it is already accepted."""
    with temporary_db_connection(), transaction.atomic():
        tool = Tool.objects.select_for_update().filter(pk=tool_id or 0).first()
        if tool is None:
            return False
        if tool.config.get("digest") == offer.digest:
            # What waited is not said any more; the tool stays as it is.
            McpPin.objects.filter(tool=tool).update(offered=None, noticed_at=None)
            return False
        pin = get_or_build_pin(tool)
        flaw = offer.flaw
        body = {"name": offer.name, "flaw": flaw} if flaw else offer.model_dump()
        is_on_again = pin.noticed_at is None and tool.enabled
        if pin.offered != body or is_on_again:
            pin.offered, pin.noticed_at = body, timezone.now()
            pin.save()
        if tool.enabled:
            tool.enabled = False
            save_tool(tool, by=None, note="Its MCP server changed it")
        return True


def get_or_build_pin(tool: Tool) -> McpPin:
    """Return the pin; a tool made without one counts as accepted as it stands."""
    pin = McpPin.objects.filter(tool=tool).first()
    if pin is not None:
        return pin
    accepted = {
        "name": str(tool.config.get("tool", "")),
        "description": tool.description,
        "args_schema": tool.args_schema or {},
        "annotations": {},
    }
    return McpPin(tool=tool, accepted=accepted)
