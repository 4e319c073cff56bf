"""Tools, credentials and MCP servers in the API; secrets are never shown."""

from collections.abc import Callable
from typing import Any, Literal

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse

from runs.api.bodies import StrictBody
from runs.api.definitions.common import (
    Definition,
    DefinitionQuery,
    DefinitionShape,
    definition_json,
    get_etag,
)
from runs.api.dispatch import json_response
from runs.api.problems import ApiProblem, field_problem, not_found
from runs.api.queries import Page, PageQuery, paginate_by_id
from runs.api.route import Route
from runs.api.shapes import Shape
from runs.serializers import Json, format_timestamp
from runs.services.agentfile.export import build_tool_entry
from runs.services.agentfile.literal_secrets import remove_literal_secrets
from runs.services.agentfile.load import AgentFileImport
from runs.services.agentfile.schema import ToolEntry
from runs.services.errors import FieldError
from tools.definition.restore_revision import restore_revision
from tools.definition.save import save_tool
from tools.models import Credential, McpServer, Tool, ToolRevision
from tools.ui.labels import can_edit_tool


class ToolSummaryShape(DefinitionShape):
    """A tool in a list."""

    kind: str
    description: str
    effect: Literal["read", "idempotent", "side_effect"]
    approval: Literal["never", "side_effects", "always"]
    enabled: bool
    revision: int
    last_error: str
    last_used_at: str | None


class ToolShape(ToolSummaryShape):
    """A tool."""

    args_schema: dict[str, Any] | None
    definition: dict[str, Any] | None
    """As an agent file has it; null if you may not edit the tool."""


class ToolBody(StrictBody):
    """What can be changed of a tool at once."""

    enabled: bool


class RevisionShape(Shape):
    """A tool as saved by one change."""

    number: int
    note: str
    by: str | None
    at: str


class CredentialShape(DefinitionShape):
    """A secret, which is never shown, and where it may be sent."""

    kind: Literal["header", "bearer", "basic", "query"]
    field: str | None
    """Null unless you may see credentials in the administration, like `hosts`."""
    hosts: list[str] | None
    has_secret: bool


class McpServerShape(DefinitionShape):
    """A server of the Model Context Protocol."""

    transport: Literal["http", "stdio"]
    url: str | None
    """Null unless you may see MCP servers in the administration, like `command`."""
    command: str | None
    credential: str | None
    """Null for none, or unless you may see MCP servers in the administration."""


def tool_summary(tool: Tool) -> Json:
    return {
        **definition_json(tool),
        "kind": tool.kind,
        "description": tool.description,
        "effect": tool.effect,
        "approval": tool.approval,
        "enabled": tool.enabled,
        "revision": tool.revision,
        "last_error": tool.last_error,
        "last_used_at": format_timestamp(tool.last_used_at),
    }


def tool_json(tool: Tool, user: User) -> Json:
    definition = None
    if can_edit_tool(tool, user):
        entry = remove_literal_secrets(build_tool_entry(tool)).entry
        definition = entry.model_dump(mode="json", exclude_none=True)
    return {
        **tool_summary(tool),
        "args_schema": tool.args_schema,
        "definition": definition,
    }


TOOLS = Definition("tool", Tool, tool_summary, tool_json)


def can_see_details(row: Credential | McpServer, user: User) -> bool:
    """Whether the user may see the page of the row in the administration."""
    name = row._meta.model_name
    may = (user.has_perm(f"tools.{do}_{name}") for do in ("view", "change"))
    return user.is_superuser or (user.is_staff and any(may))


def credential_json(credential: Credential, user: User) -> Json:
    shows = can_see_details(credential, user)
    return {
        **definition_json(credential),
        "kind": credential.kind,
        "field": credential.field if shows else None,
        "hosts": list(credential.hosts) if shows else None,
        "has_secret": bool(credential.sealed),
    }


def mcp_server_json(server: McpServer, user: User) -> Json:
    shows = can_see_details(server, user)
    credential = server.credential if shows else None
    return {
        **definition_json(server),
        "transport": server.transport,
        "url": server.url if shows else None,
        "command": server.command if shows else None,
        "credential": credential.slug if credential else None,
    }


CREDENTIALS = Definition("credential", Credential, definition_json, credential_json)
MCP_SERVERS = Definition("MCP server", McpServer, definition_json, mcp_server_json)


def list_page(
    kind: Definition,
    user: User,
    query: DefinitionQuery,
    show: Callable[[Any, User], Json],
) -> HttpResponse:
    """Return a page of rows that the user may see."""
    rows = kind.visible(user).filter(archived_at__isnull=not query.archived)
    if query.slug:
        rows = rows.filter(slug=query.slug)
    for word in query.q.split():
        rows = rows.filter(name__icontains=word)
    return json_response(paginate_by_id(rows, query, lambda row: show(row, user)))


def list_tools(
    request: HttpRequest, user: User, query: DefinitionQuery
) -> HttpResponse:
    """The tools that you may see, the newest first."""
    return list_page(TOOLS, user, query, lambda tool, _: tool_summary(tool))


def read_tool(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """One tool, with an ETag; secrets in its definition are left out."""
    return TOOLS.respond(user, int(pk))


def require_tool_editor(user: User, pk: str) -> Tool:
    """Return a tool that the user may change, as on its page; raise a 403 or 404."""
    tool: Tool = TOOLS.find(user, pk)
    if not can_edit_tool(tool, user):
        raise field_problem("id", "You may not change this tool.", 403)
    return tool


def create_tool(request: HttpRequest, user: User, body: ToolEntry) -> HttpResponse:
    """Create a tool from its entry in an agent file; people enable it."""
    if not (user.is_staff and user.has_perm("tools.add_tool")):
        raise field_problem("slug", "You may not create tools.", 403)
    if Tool.objects.filter(slug=body.slug).exists():
        raise field_problem("slug", f"A tool {body.slug!r} exists already.")
    work = AgentFileImport(owner=user, inert=True, publishes=False)
    with transaction.atomic():
        work.store_tool("tool", body)
        if work.errors or work.missing:
            raise ApiProblem(422, [*iter_entry_errors(work)])
    made = Tool.objects.get(slug=body.slug)
    return TOOLS.respond(user, made.pk, 201)


def iter_entry_errors(work: AgentFileImport) -> Any:
    """Yield the problems of an entry, named as in the body."""
    for error in work.errors:
        yield FieldError(error.field.removeprefix("tool."), error.message)
    for text in work.missing:
        yield FieldError("body", f"{text}. Create such a tool on its page.")


def switch_tool(
    request: HttpRequest, user: User, pk: str, body: ToolBody
) -> HttpResponse:
    """Enable or disable a tool; runs stop calling a disabled one at once."""
    require_tool_editor(user, pk)
    with TOOLS.lock(request, pk) as tool:
        tool.enabled = body.enabled
        save_tool(tool, by=user, note="Enabled" if tool.enabled else "Disabled")
    return TOOLS.respond(user, tool.pk)


def list_tool_revisions(
    request: HttpRequest, user: User, pk: str, query: PageQuery
) -> HttpResponse:
    """The revisions of a tool, the newest first."""
    rows = ToolRevision.objects.filter(tool=require_tool_editor(user, pk))
    page = paginate_by_id(rows.select_related("by"), query, revision_json)
    return json_response(page)


def revision_json(revision: ToolRevision) -> Json:
    return {
        "number": revision.number,
        "note": revision.note,
        "by": revision.by.get_username() if revision.by else None,
        "at": format_timestamp(revision.at),
    }


def restore_tool_revision(
    request: HttpRequest, user: User, pk: str, number: str
) -> HttpResponse:
    """Make a revision the definition again, as a new revision."""
    require_tool_editor(user, pk)
    with TOOLS.lock(request, pk) as tool:
        revision = ToolRevision.objects.filter(tool=tool, number=int(number)).first()
        if revision is None:
            raise not_found("Revision", number)
        restored = restore_revision(revision, by=user)
    return TOOLS.respond(user, restored.pk)


def list_credentials(
    request: HttpRequest, user: User, query: DefinitionQuery
) -> HttpResponse:
    """The credentials that you may use in tools; nobody can read their secrets."""
    return list_page(CREDENTIALS, user, query, credential_json)


def read_credential(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """One credential, without its secret."""
    return CREDENTIALS.respond(user, int(pk))


def list_mcp_servers(
    request: HttpRequest, user: User, query: DefinitionQuery
) -> HttpResponse:
    """The MCP servers that you may see."""
    return list_page(MCP_SERVERS, user, query, mcp_server_json)


def read_mcp_server(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """One MCP server, without secrets."""
    server = MCP_SERVERS.find(user, pk)
    return json_response(mcp_server_json(server, user), ETag=get_etag(server))


ROUTES = [
    Route(
        "GET",
        "tools",
        list_tools,
        "List tools",
        Page[ToolSummaryShape],
        query=DefinitionQuery,
    ),
    Route(
        "POST",
        "tools",
        create_tool,
        "Create a tool",
        ToolShape,
        scope="build",
        body=ToolEntry,
        status=201,
        is_idempotent=True,
    ),
    Route("GET", "tools/{id}", read_tool, "Read a tool", ToolShape, has_etag=True),
    Route(
        "PATCH",
        "tools/{id}",
        switch_tool,
        "Enable or disable a tool",
        ToolShape,
        scope="build",
        body=ToolBody,
        has_etag=True,
    ),
    Route(
        "GET",
        "tools/{id}/revisions",
        list_tool_revisions,
        "List revisions",
        Page[RevisionShape],
        query=PageQuery,
    ),
    Route(
        "POST",
        "tools/{id}/revisions/{number}/restore",
        restore_tool_revision,
        "Restore a revision",
        ToolShape,
        scope="build",
        has_etag=True,
    ),
    Route(
        "GET",
        "credentials",
        list_credentials,
        "List credentials",
        Page[CredentialShape],
        query=DefinitionQuery,
    ),
    Route(
        "GET",
        "credentials/{id}",
        read_credential,
        "Read a credential",
        CredentialShape,
        has_etag=True,
    ),
    Route(
        "GET",
        "mcp-servers",
        list_mcp_servers,
        "List MCP servers",
        Page[McpServerShape],
        query=DefinitionQuery,
    ),
    Route(
        "GET",
        "mcp-servers/{id}",
        read_mcp_server,
        "Read an MCP server",
        McpServerShape,
        has_etag=True,
    ),
]
