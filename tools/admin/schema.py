"""The editors of a tool's form, as htmx asks for them while one types."""

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from tools.forms.schema import SchemaEditor, said, shown
from tools.text_flaw import json_flaw

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


@require_POST
def json_part(request: HttpRequest) -> HttpResponse:
    """Say what is wrong with the JSON body as it is typed."""
    if not request.user.has_perms(["tools.view_tool"]):
        raise PermissionDenied
    typed = request.POST.get("json_body", "")
    flaw = json_flaw(typed) if typed.strip() else ""
    return render(request, "tools/_json_says.html", {"flaw": flaw})
