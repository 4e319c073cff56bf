"""The editor of a tool's arguments, as htmx asks for it while one types."""

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from tools.forms.schema import SchemaEditor, said, shown

FIELD = "args_schema"


@require_POST
def schema_part(request: HttpRequest) -> HttpResponse:
    """Show the editor after a button of it, or what is wrong with what is typed."""
    if not request.user.has_perms(["tools.view_tool"]):
        raise PermissionDenied
    draft = SchemaEditor().value_from_datadict(request.POST, None, FIELD)
    if request.GET.get("part") == "says":
        return render(request, "tools/_schema_says.html", said(draft))
    return render(request, "tools/_schema.html", shown(FIELD, draft))
