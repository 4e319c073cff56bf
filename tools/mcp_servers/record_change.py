"""What becomes of a tool when its MCP server says something else of it."""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from tools.credentials import temporary_db_connection
from tools.definition.save import save_tool
from tools.mcp_offer import Offer
from tools.mcp_pin import McpPin
from tools.models import Tool

DESCRIPTION_NOTE = "Its MCP server changed only its description"
DESCRIPTION_PAUSE = timedelta(hours=1)
"""How often a new description is stored, as some contain the time of day."""


def record_mcp_change(tool_id: int | None, offer: Offer) -> bool:
    """Keep `offer` for a person to look at; False if it is accepted.

    A change of the description alone is accepted if the server is set so.
    """
    with temporary_db_connection(), transaction.atomic():
        tool = Tool.objects.select_for_update().filter(pk=tool_id or 0).first()
        if tool is None:
            return False
        if tool.config.get("digest") == offer.digest:
            # The server no longer says what waited; the tool stays as it is.
            McpPin.objects.filter(tool=tool).update(offered=None, noticed_at=None)
            return False
        pin = get_or_build_pin(tool)
        if accepts_by_itself(tool, pin, offer):
            accept_description(tool, pin, offer)
            return False
        body = offer.refused_definition if offer.flaw_code else offer.model_dump()
        is_on_again = pin.noticed_at is None and tool.enabled
        if pin.offered != body or is_on_again:
            pin.offered, pin.noticed_at = body, timezone.now()
            pin.save()
        if tool.enabled:
            tool.enabled = False
            save_tool(tool, by=None, note="Its MCP server changed it")
        return True


def accepts_by_itself(tool: Tool, pin: McpPin, offer: Offer) -> bool:
    """Whether nobody has to look: the server is trusted with its descriptions."""
    server = tool.mcp_server
    return (
        server is not None
        and server.accepts_descriptions
        and bool(tool.config.get("digest"))
        and not offer.flaw_code
        and Offer.model_validate(pin.accepted).differs_only_in_description(offer)
    )


def accept_description(tool: Tool, pin: McpPin, offer: Offer) -> None:
    """Store the new description, at most once an hour; enable what waited for it."""
    newest = tool.revisions.order_by("-number").first()
    is_recent = (
        newest is not None
        and newest.note == DESCRIPTION_NOTE
        and timezone.now() - newest.at < DESCRIPTION_PAUSE
    )
    if is_recent and pin.noticed_at is None:
        return
    if tool.description == pin.accepted.get("description"):
        tool.description = offer.description
    tool.config = {**tool.config, "digest": offer.digest}
    tool.enabled = tool.enabled or pin.noticed_at is not None
    save_tool(tool, by=None, note=DESCRIPTION_NOTE)
    pin.accepted, pin.offered, pin.noticed_at = offer.model_dump(), None, None
    pin.save()


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
