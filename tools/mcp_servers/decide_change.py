"""Accepting or rejecting what an MCP server now says of one of its tools."""

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from tools.audit.write import write_entry
from tools.definition.save import save_tool
from tools.errors import ToolFailed
from tools.mcp_offer import Offer
from tools.mcp_pin import McpPin
from tools.models import Tool


class StaleMcpChange(ToolFailed):
    """What waits is not what the person has seen."""

    def __init__(self) -> None:
        super().__init__(
            "The server changed this tool again, or somebody else has decided. Look at "
            "it once more."
        )


class UnusableMcpChange(ToolFailed):
    """No tool can be made of what the server says now."""

    def __init__(self, flaw: str) -> None:
        super().__init__(
            _("This definition cannot be used: %(reason)s.")
            % {"reason": flaw.rstrip(".")}
        )


def accept_mcp_change(tool: Tool, digest: str, *, by: User) -> Tool:
    """Take over the definition with this `digest` and switch the tool on.

    A description that a person wrote for the model stays as it is.
    """
    with transaction.atomic():
        tool = Tool.objects.select_for_update().get(pk=tool.pk)
        pin = McpPin.objects.filter(tool=tool).first()
        if pin is None or pin.offered is None:
            raise StaleMcpChange
        if pin.flaw:
            raise UnusableMcpChange(pin.flaw)
        offer = Offer.model_validate(pin.offered)
        if offer.digest != digest:
            raise StaleMcpChange
        if tool.description == pin.accepted.get("description"):
            tool.description = offer.description
        tool.args_schema = offer.args_schema
        tool.config = {**tool.config, "digest": digest}
        tool.enabled = True
        save_tool(tool, by=by, note="Accepted the change of its MCP server")
        pin.accepted, pin.offered, pin.noticed_at = pin.offered, None, None
        pin.save()
    return tool


def reject_mcp_change(tool: Tool, digest: str, *, by: User) -> None:
    """Leave the tool disabled and reject the definition with this `digest`.

    It is not reported again until the server offers another one, or somebody enables
    the tool.
    """
    with transaction.atomic():
        tool = Tool.objects.select_for_update().get(pk=tool.pk)
        pin = McpPin.objects.filter(tool=tool).exclude(noticed_at=None).first()
        if pin is None or pin.offered is None or pin.digest != digest:
            raise StaleMcpChange
        pin.noticed_at = None
        pin.save()
        write_entry("kept off", "tool", tool, by=by, note="Its MCP server changed it")
