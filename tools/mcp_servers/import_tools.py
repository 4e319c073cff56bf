"""Asking an MCP server for its tools, and making tools of those a person chose."""

from collections.abc import Mapping

from django.contrib.auth.models import User
from django.db import transaction

from tools.definition.save import save_tool
from tools.mcp.session import open_mcp_session
from tools.mcp_offer import Offer
from tools.mcp_pin import McpPin
from tools.mcp_servers.connect import McpConnection, get_mcp_connection, use_connection
from tools.mcp_servers.record_change import record_mcp_change
from tools.models import McpServer, Tool
from tools.net.deadline import Deadline
from tools.ownership import free_slug

DISCOVERY_TIMEOUT = 10.0
"""Seconds for listing the tools of a server that runs."""

START_TIMEOUT = 30.0
"""The same for a command, which is started, and often downloaded before."""


def discover_mcp_tools(server: McpServer, *, by: User) -> list[Offer]:
    """Return what the server offers now; raise `ToolFailed` or `Interrupted`.

    Tools that were taken over and are something else now are disabled.
    """
    deadline = Deadline(seconds=get_discovery_timeout(server))

    def list_offers(connection: McpConnection) -> list[Offer]:
        with (
            connection.masking_errors(),
            open_mcp_session(connection.open_link(), deadline) as session,
        ):
            return session.tools(deadline)

    offers = use_connection(
        lambda rejected: get_mcp_connection(
            server.pk, by=by, deadline=deadline, rejected_token=rejected
        ),
        list_offers,
    )
    for tool in list_server_tools(server):
        for offer in offers:
            if offer.name == tool.config.get("tool"):
                record_mcp_change(tool.pk, offer)
    return offers


def get_discovery_timeout(server: McpServer) -> float:
    """Return how many seconds listing the tools of a server may take."""
    is_command = server.transport == McpServer.Transport.STDIO
    return START_TIMEOUT if is_command else DISCOVERY_TIMEOUT


def import_mcp_tools(
    server: McpServer, offers: list[Offer], chosen: Mapping[str, str], *, by: User
) -> list[Tool]:
    """Make a tool of each offer in `chosen`, which maps names to the hashes shown.

    They are private and disabled until a person has looked at them. An offer that
    is not what was shown, or has a tool already, is left out.
    """
    known = {tool.config.get("tool") for tool in list_server_tools(server)}
    wanted = [
        offer
        for offer in offers
        if chosen.get(offer.name) == offer.digest
        and offer.name not in known
        and not offer.flaw_code
    ]
    with transaction.atomic():
        return [create_mcp_tool(server, offer, by=by) for offer in wanted]


def list_server_tools(server: McpServer) -> list[Tool]:
    """Return the tools of a server that are not in the archive."""
    rows = Tool.objects.filter(mcp_server=server, archived_at=None)
    return list(rows.select_related("pin"))


def create_mcp_tool(server: McpServer, offer: Offer, *, by: User) -> Tool:
    tool = Tool(
        name=offer.tool_name,
        slug=free_slug(Tool, f"{server.slug} {offer.tool_name.replace('_', ' ')}"),
        description=offer.description,
        kind="mcp",
        config={"tool": offer.name, "digest": offer.digest},
        args_schema=offer.args_schema,
        effect=Tool.Effect.SIDE_EFFECT,
        enabled=False,
        owner=by,
        mcp_server=server,
    )
    save_tool(tool, by=by, note=f"From the MCP server {server.name!r}"[:200])
    McpPin.objects.create(tool=tool, accepted=offer.model_dump())
    return tool
