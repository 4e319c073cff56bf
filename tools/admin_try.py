"""The page on which a tool is tried out."""

from typing import Any, NamedTuple

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from tools.errors import ToolFailed
from tools.forms.arguments import ArgumentsForm
from tools.models import Tool
from tools.services import TryResult, tool_spec_of, try_tool
from tools.services.show_request import show_request
from tools.services.try_tool import TRY_SECONDS
from tools.spec import ToolSpec
from tools.storable import storable


class Words(NamedTuple):
    """How the page speaks of what a call hands over."""

    only_show: str
    handed: str
    maybe: str
    """What stands there after a failure, which may have come before it."""
    would_be: str
    is_handed: str


REQUEST = Words(
    only_show="Only show the request",
    handed="What was sent",
    maybe="The request",
    would_be="What would be sent",
    is_handed="What is sent",
)
WORDS = {
    "sql": Words(
        only_show="Only show the query",
        handed="What was asked",
        maybe="The query",
        would_be="What would be asked",
        is_handed="What is asked",
    ),
    "python": Words(
        only_show="Only show what the code gets",
        handed="What the code got",
        maybe="The arguments",
        would_be="What the code would get",
        is_handed="What the code gets",
    ),
    "function": Words(
        only_show="Only show what the function gets",
        handed="What the function got",
        maybe="The arguments",
        would_be="What the function would get",
        is_handed="What the function gets",
    ),
}
"""By the kind of tool; of the others, a request leaves the server."""


def try_page(site: Any, request: HttpRequest, pk: int) -> HttpResponse:
    """GET shows a form made from the schema; POST the request, and makes the call."""
    tool: Tool | None = site.get_object(request, str(pk))
    if tool is None:
        raise Http404
    if not site.has_view_permission(request, tool):
        raise PermissionDenied
    spec = tool_spec_of(tool)
    form = ArgumentsForm(request.POST or None, schema=spec.args_schema)
    result: TryResult | None = None
    asked = refused = ""
    if request.method == "POST":
        form = ArgumentsForm(request.POST, schema=spec.args_schema)
        if form.is_valid():
            asked, refused = shown_request(spec, form.tool_input())
            if "show" not in request.POST:
                result = try_tool(tool, form.tool_input(), by=request.user)  # type: ignore[arg-type]  # staff
    context = {
        **site.admin_site.each_context(request),
        "title": f"Try {tool.name}",
        "opts": site.model._meta,
        "tool": tool,
        "spec": spec,
        "words": WORDS.get(spec.kind, REQUEST),
        "form": form,
        "asked": asked,
        "refused": refused,
        "result": result,
        "seconds": int(min(TRY_SECONDS, spec.timeout)),
        "can_change": site.has_change_permission(request, tool),
    }
    return render(request, "admin/tools/tool/try.html", context)


def shown_request(spec: ToolSpec, tool_input: Any) -> tuple[str, str]:
    """Return what would be sent, or why nothing can be."""
    try:
        return storable(show_request(spec, tool_input)), ""
    except ToolFailed as refused:
        return "", storable(str(refused))
