"""Trying a tool through the API: one real call, as from the page of the tool."""

from typing import Any, Literal

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse

from runs.api.bodies import StrictBody
from runs.api.definitions.tool_changes import ToolChange, apply_tool_change
from runs.api.definitions.tools import TOOLS
from runs.api.dispatch import json_response
from runs.api.problems import field_problem
from runs.api.route import Route
from runs.api.shapes import Shape
from tools.definition.freeze import freeze_tool
from tools.definition.save import serialize_definition
from tools.errors import ToolFailed
from tools.models import Tool
from tools.registry import find_function
from tools.services.show_request import show_request
from tools.services.try_tool import NOT_YOURS, find_refusal, try_tool
from tools.spec import ToolSpec
from tools.text.storable import replace_unstorable
from tools.ui.labels import can_edit_tool, can_test_tools

UNNAMED = "new_tool"


class NewToolDraft(ToolChange):
    """A tool that is not created."""

    kind: Literal["function", "http", "python", "sql"]


class TrialFields(StrictBody):
    """The arguments of a call, and whether it is made."""

    arguments: Any = {}
    """As a model would send them: an object, or a text for a tool without a schema."""
    preview: bool = False
    """Return the request without making the call."""
    confirm: bool = False
    """Must be true for calls with side effects."""


class ToolTrialBody(TrialFields):
    """The body of `POST /api/v1/tools/{id}/try`."""

    definition: ToolChange | None = None
    """Values that are not saved, in place of the stored ones."""


class NewToolTrialBody(TrialFields):
    """The body of `POST /api/v1/tools/try`."""

    definition: NewToolDraft


class ToolTrialShape(Shape):
    """The result of a call."""

    request: str
    """What was, or would be, sent; without the secret of a credential."""
    is_called: bool
    ok: bool
    """Whether the call worked; false without one."""
    result: str
    """The text that a model would read."""
    is_cut: bool
    """Whether the result was longer."""
    error: str
    http_status: int | None
    seconds: float
    is_unsaved: bool
    """Whether the definition differs from the stored one."""


def try_stored_tool(
    request: HttpRequest, user: User, pk: str, body: ToolTrialBody
) -> HttpResponse:
    """Call a tool once, for at most ten seconds, with typed values if you may edit it.

    A tool whose calls need an approval is called only for people who can edit it.
    """
    tool: Tool = TOOLS.find(user, pk)
    is_editor = can_edit_tool(tool, user)
    if not (is_editor or can_test_tools(user)):
        raise field_problem("id", "You may not test this tool.", 403)
    saved = serialize_definition(tool)
    if body.definition is not None:
        if not is_editor:
            raise field_problem("definition", NOT_YOURS, 403)
        apply_tool_change(tool, body.definition, user)
    is_unsaved = serialize_definition(tool) != saved
    return answer_trial(tool, user, body, is_unsaved=is_unsaved)


def try_tool_draft(
    request: HttpRequest, user: User, body: NewToolTrialBody
) -> HttpResponse:
    """Call a tool that is not created; only the audit entry is stored."""
    if not (user.is_staff and user.has_perm("tools.add_tool")):
        raise field_problem("definition", "You may not create tools.", 403)
    given = body.definition
    draft = Tool(kind=given.kind, owner=user, name=given.name or UNNAMED)
    if given.kind == "function" and "effect" not in given.model_fields_set:
        draft.effect = find_declared_effect(given.config)
    apply_tool_change(draft, given, user)
    return answer_trial(draft, user, body, is_unsaved=True)


def find_declared_effect(config: dict[str, Any]) -> str:
    """Return the effect of a registered function; that of others is checked later."""
    try:
        return find_function(str(config.get("function", ""))).effect
    except ToolFailed:
        return "side_effect"


def answer_trial(
    tool: Tool, user: User, body: TrialFields, *, is_unsaved: bool
) -> HttpResponse:
    """Make the call, unless only a preview was requested; raise a 422 if refused."""
    spec = freeze_tool(tool)
    arguments = check_arguments(spec, body.arguments)
    refused = find_refusal(tool, spec, arguments, by=user, is_unsaved=is_unsaved)
    if refused is not None:
        raise field_problem("arguments", refused)
    shape: dict[str, Any] = {
        "request": show_trial_request(spec, arguments),
        "is_called": False,
        "ok": False,
        "result": "",
        "is_cut": False,
        "error": "",
        "http_status": None,
        "seconds": 0.0,
        "is_unsaved": is_unsaved,
    }
    if body.preview:
        return json_response(shape)
    if spec.effect == "side_effect" and not body.confirm:
        message = "The call has side effects. Send `confirm` with true to make it."
        raise field_problem("confirm", message)
    done = try_tool(tool, arguments, by=user, is_unsaved=is_unsaved)
    return json_response(
        shape
        | {
            "is_called": True,
            "ok": done.ok,
            "result": done.shown_text,
            "is_cut": done.is_cut,
            "error": done.error,
            "http_status": done.exchange.status,
            "seconds": done.seconds,
        }
    )


def check_arguments(spec: ToolSpec, arguments: Any) -> Any:
    """Return the arguments; raise a 422 if they are not what the tool takes."""
    if spec.args_schema is None and not isinstance(arguments, str):
        raise field_problem("arguments", "This tool takes one text.")
    return arguments


def show_trial_request(spec: ToolSpec, arguments: Any) -> str:
    """Return the request as text; raise a 422 if none can be built."""
    try:
        return replace_unstorable(show_request(spec, arguments))
    except ToolFailed as refused:
        message = replace_unstorable(str(refused))
        raise field_problem("arguments", message) from None


ROUTES = [
    Route(
        "POST",
        "tools/try",
        try_tool_draft,
        "Try a tool that is not created",
        ToolTrialShape,
        scope="build",
        body=NewToolTrialBody,
    ),
    Route(
        "POST",
        "tools/{id}/try",
        try_stored_tool,
        "Try a tool",
        ToolTrialShape,
        scope="build",
        body=ToolTrialBody,
    ),
]
