"""MCP servers in the API: change and test them, and import their tools."""

from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from pydantic import Field

from runs.api.bodies import EmptyBody, StrictBody
from runs.api.definitions.common import (
    Definition,
    DefinitionQuery,
    DefinitionShape,
    Name,
    SharingBody,
    definition_json,
    list_definitions,
)
from runs.api.definitions.staff_rows import (
    can_see_details,
    delete_staff_row,
    require_changeable,
    require_right,
    save_by_form,
)
from runs.api.definitions.tool_changes import find_usable_credential
from runs.api.definitions.tools import ToolSummaryShape, tool_summary
from runs.api.dispatch import json_response, no_content
from runs.api.problems import field_problem
from runs.api.queries import Page
from runs.api.route import Route
from runs.api.shapes import Shape
from runs.serializers import Json
from tools.audit.write import replace_unstorable_values
from tools.errors import Interrupted, ToolFailed
from tools.forms.mcp_server import McpServerForm
from tools.mcp_offer import Offer
from tools.mcp_servers.import_tools import (
    discover_mcp_tools,
    import_mcp_tools,
    list_server_tools,
)
from tools.models import Credential, McpServer
from tools.text.storable import replace_unstorable

COLUMNS = (
    *("name", "transport", "url", "client_id", "command"),
    *("accepts_descriptions", "visibility"),
)
MAX_IMPORTED = 500


class McpServerShape(DefinitionShape):
    """A server of the Model Context Protocol."""

    transport: Literal["http", "stdio"]
    url: str | None
    """Null unless you may see MCP servers in the administration, like `command`."""
    command: str | None
    credential: str | None
    """Null for none, or unless you may see MCP servers in the administration."""
    client_id: str | None
    has_client_secret: bool
    accepts_descriptions: bool


class McpServerFields(SharingBody):
    """What can be changed of an MCP server; what is left out stays."""

    transport: Literal["http", "stdio"] = "http"
    url: Annotated[str, Field(max_length=500)] = ""
    """Of the transport `http`."""
    command: Annotated[str, Field(max_length=80)] = ""
    """Of the transport `stdio`: a name in `AGENTSITE_MCP_COMMANDS`."""
    credential: Annotated[str, Field(max_length=80)] | None = None
    """Slug of a credential that you can use; null for none."""
    client_id: Annotated[str, Field(max_length=500)] = ""
    client_secret: Annotated[str, Field(max_length=1000)] = ""
    """Write-only; dropped with the client ID."""
    accepts_descriptions: bool = False
    """Whether tools of which only the description changed stay enabled."""


class NewMcpServerBody(McpServerFields):
    """The body of `POST /api/v1/mcp-servers`."""

    name: Name


class McpServerBody(McpServerFields):
    """The body of `PATCH /api/v1/mcp-servers/{id}`."""

    name: Name = ""


class OfferShape(Shape):
    """A tool of the server, as it is now."""

    name: str
    description: str
    args_schema: dict[str, Any]
    digest: str
    """Send it to import the tool only if it is still the same."""
    tool: int | None
    """Id of the tool that it was imported as."""
    is_changed: bool
    """Whether it differs from what was accepted."""
    flaw: str
    """Why it cannot be imported; empty if it can."""


class McpTestShape(Shape):
    """Whether the server answered, and with which tools."""

    ok: bool
    message: str
    tools: list[OfferShape]


class ImportedOffer(StrictBody):
    """A tool of the server."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    digest: Annotated[str, Field(min_length=64, max_length=64)]


class McpImportBody(StrictBody):
    """The body of `POST /api/v1/mcp-servers/{id}/import`."""

    tools: Annotated[list[ImportedOffer], Field(min_length=1, max_length=MAX_IMPORTED)]


class McpImportShape(Shape):
    """What was imported."""

    imported: list[ToolSummaryShape]
    """They are private and disabled until you enable them."""
    skipped: list[str]
    """Names of tools that changed, are gone, or were imported before."""


def mcp_server_json(server: McpServer, user: User) -> Json:
    shows = can_see_details(server, user)
    credential = server.credential if shows else None
    return {
        **definition_json(server),
        "transport": server.transport,
        "url": server.url if shows else None,
        "command": server.command if shows else None,
        "credential": credential.slug if credential else None,
        "client_id": server.client_id if shows else None,
        "has_client_secret": bool(server.sealed_client_secret),
        "accepts_descriptions": server.accepts_descriptions,
    }


MCP_SERVERS = Definition(
    "MCP server",
    McpServer,
    definition_json,
    mcp_server_json,
    url_name="api-mcp-server",
)


def list_mcp_servers(
    request: HttpRequest, user: User, query: DefinitionQuery
) -> HttpResponse:
    """The MCP servers that you may see."""
    return list_definitions(
        MCP_SERVERS, user, query, lambda row: mcp_server_json(row, user)
    )


def read_mcp_server(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """One MCP server, without secrets."""
    return MCP_SERVERS.respond(user, int(pk))


def create_mcp_server(
    request: HttpRequest, user: User, body: NewMcpServerBody
) -> HttpResponse:
    """Create an MCP server; no request is sent to it yet."""
    require_right(user, "add_mcpserver")
    with transaction.atomic():
        made = save_mcp_server(McpServer(owner=user), body, user)
    return MCP_SERVERS.respond(user, made.pk, 201)


def change_mcp_server(
    request: HttpRequest, user: User, pk: str, body: McpServerBody
) -> HttpResponse:
    """Change an MCP server; without `client_secret`, the stored one stays."""
    require_changeable(MCP_SERVERS, user, pk)
    with MCP_SERVERS.lock(request, pk) as row:
        save_mcp_server(row, body, user)
    return MCP_SERVERS.respond(user, row.pk)


def save_mcp_server(row: McpServer, body: McpServerFields, user: User) -> Any:
    """Save what the body has; raise a 422.

    Only a credential in the body has to be one that `user` may use: a stored one is
    opened for the owner of the server.
    """
    credential = row.credential
    if "credential" in body.model_fields_set:
        credential = find_usable_credential(body.credential, user)

    def open_form(data: QueryDict, server: Any) -> McpServerForm:
        data.pop("credential", None)
        if credential is not None:
            data["credential"] = str(credential.pk)
        form = McpServerForm(data, instance=server)
        chosen: Any = form.fields["credential"]
        kept = [] if credential is None else [credential.pk]
        chosen.queryset = Credential.objects.filter(pk__in=kept)
        return form

    return save_by_form(row, body, COLUMNS, open_form)


def delete_mcp_server(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """Delete an MCP server that no tool uses."""
    delete_staff_row(MCP_SERVERS, request, user, pk)
    return no_content()


def run_mcp_test(
    request: HttpRequest, user: User, pk: str, body: EmptyBody
) -> HttpResponse:
    """List the tools that the server offers now.

    Imported tools that are something else now are disabled until a person accepts the
    change.
    """
    server = find_reachable_server(user, pk)
    try:
        offers = discover_mcp_tools(server, by=user)
    except (ToolFailed, Interrupted) as failed:
        message = replace_unstorable(str(failed))
        return json_response({"ok": False, "message": message, "tools": []})
    taken = {tool.config.get("tool"): tool for tool in list_server_tools(server)}
    rows = [offer_json(offer, taken.get(offer.name)) for offer in offers]
    return json_response({"ok": True, "message": "", "tools": rows})


def find_reachable_server(user: User, pk: str) -> McpServer:
    """Return a server whose page the user may open; raise a 403 or 404."""
    server: McpServer = MCP_SERVERS.find(user, pk)
    if not can_see_details(server, user):
        raise field_problem("id", "You may not use this MCP server here.", 403)
    return server


def offer_json(offer: Offer, tool: Any) -> Json:
    shape = {
        "name": offer.name,
        "description": offer.description,
        "args_schema": {} if offer.flaw_code else offer.args_schema,
        "digest": offer.digest,
        "tool": tool.pk if tool else None,
        "is_changed": tool is not None and tool.config.get("digest") != offer.digest,
        "flaw": offer.flaw,
    }
    found: Json = replace_unstorable_values(shape)
    return found


def import_server_tools(
    request: HttpRequest, user: User, pk: str, body: McpImportBody
) -> HttpResponse:
    """Import tools of the server by name and digest; repeating it imports nothing."""
    require_right(user, "add_tool")
    server = find_reachable_server(user, pk)
    try:
        offers = discover_mcp_tools(server, by=user)
    except (ToolFailed, Interrupted) as failed:
        message = replace_unstorable(str(failed))
        raise field_problem("id", message, 409) from None
    chosen = {one.name: one.digest for one in body.tools}
    made = import_mcp_tools(server, offers, chosen, by=user)
    known = {tool.config["tool"] for tool in made}
    return json_response(
        {
            "imported": [tool_summary(tool) for tool in made],
            "skipped": [name for name in chosen if name not in known],
        }
    )


ROUTES = [
    Route(
        "GET",
        "mcp-servers",
        list_mcp_servers,
        "List MCP servers",
        Page[McpServerShape],
        query=DefinitionQuery,
    ),
    Route(
        "POST",
        "mcp-servers",
        create_mcp_server,
        "Create an MCP server",
        McpServerShape,
        scope="build",
        body=NewMcpServerBody,
        status=201,
        is_idempotent=True,
    ),
    Route(
        "GET",
        "mcp-servers/{id}",
        read_mcp_server,
        "Read an MCP server",
        McpServerShape,
        has_etag=True,
    ),
    Route(
        "PATCH",
        "mcp-servers/{id}",
        change_mcp_server,
        "Change an MCP server",
        McpServerShape,
        scope="build",
        body=McpServerBody,
        has_etag=True,
    ),
    Route(
        "DELETE",
        "mcp-servers/{id}",
        delete_mcp_server,
        "Delete an MCP server",
        scope="build",
        status=204,
        errors=(409,),
        has_etag=True,
    ),
    Route(
        "POST",
        "mcp-servers/{id}/test",
        run_mcp_test,
        "Test an MCP server",
        McpTestShape,
        scope="build",
        body=EmptyBody,
    ),
    Route(
        "POST",
        "mcp-servers/{id}/import",
        import_server_tools,
        "Import tools of an MCP server",
        McpImportShape,
        scope="build",
        body=McpImportBody,
        errors=(409,),
    ),
]
