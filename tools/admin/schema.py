"""Parts of the tool form that htmx requests while the person types."""

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from tools.forms.schema import (
    SchemaEditor,
    build_editor_context,
    find_draft_messages,
    parse_schema_draft,
)
from tools.text.parse_errors import find_json_error

SCHEMA_FIELD_NAME = "args_schema"


@require_POST
def schema_editor_view(request: HttpRequest) -> HttpResponse:
    """Show the editor after a button was pressed, or the errors only.

    While code is typed, show the arguments of its function if they are others.
    """
    if not request.user.has_perms(["tools.view_tool"]):
        raise PermissionDenied
    draft = SchemaEditor().value_from_datadict(request.POST, None, SCHEMA_FIELD_NAME)
    if request.GET.get("part") == "function":
        shown = parse_schema_draft(request.POST, SCHEMA_FIELD_NAME)
        if (draft.shape, draft.json) == (shown.shape, shown.json):
            return HttpResponse(status=204)  # htmx leaves the editor as it is
    if request.GET.get("part") == "says":
        return render(request, "tools/_schema_says.html", find_draft_messages(draft))
    return render(
        request, "tools/_schema.html", build_editor_context(SCHEMA_FIELD_NAME, draft)
    )


@require_POST
def check_json_view(request: HttpRequest) -> HttpResponse:
    """Show the error in the JSON body, if any."""
    if not request.user.has_perms(["tools.view_tool"]):
        raise PermissionDenied
    typed = request.POST.get("json_body", "")
    flaw = find_json_error(typed) if typed.strip() else ""
    return render(request, "tools/_json_says.html", {"flaw": flaw})
