"""Tools in the API; secrets in their definitions are never shown."""

from typing import Any, Literal

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse

from runs.api.definitions.common import (
    Definition,
    DefinitionQuery,
    DefinitionShape,
    definition_json,
    list_definitions,
    noted_change_json,
    save_groups,
)
from runs.api.definitions.tool_changes import ToolBody, apply_tool_change
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
from tools.models import Tool, ToolRevision
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


class RevisionShape(Shape):
    """A tool as saved by one change."""

    number: int
    note: str
    by: str | None
    at: str


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


def list_tools(
    request: HttpRequest, user: User, query: DefinitionQuery
) -> HttpResponse:
    """The tools that you may see, the newest first."""
    return list_definitions(TOOLS, user, query, tool_summary)


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


def change_tool(
    request: HttpRequest, user: User, pk: str, body: ToolBody
) -> HttpResponse:
    """Change what the body has, as a new revision, or enable or disable the tool.

    Runs stop calling a disabled tool at once; other changes are for new runs.
    """
    require_tool_editor(user, pk)
    with TOOLS.lock(request, pk) as tool:
        apply_tool_change(tool, body, user)
        save_tool(tool, by=user, note=body.note or describe_tool_change(body))
        save_groups(tool, body)
    return TOOLS.respond(user, tool.pk)


def describe_tool_change(body: ToolBody) -> str:
    """Return the note of a change that has none."""
    if body.model_fields_set == {"enabled"}:
        return "Enabled" if body.enabled else "Disabled"
    return "Changed through the API"


def list_tool_revisions(
    request: HttpRequest, user: User, pk: str, query: PageQuery
) -> HttpResponse:
    """The revisions of a tool, the newest first."""
    rows = ToolRevision.objects.filter(tool=require_tool_editor(user, pk))
    page = paginate_by_id(rows.select_related("by"), query, noted_change_json)
    return json_response(page)


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
        change_tool,
        "Change a tool",
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
]
