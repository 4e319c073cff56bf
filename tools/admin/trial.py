"""The page for testing a tool."""

from typing import Any, NamedTuple

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _

from tools.definition.freeze import freeze_tool
from tools.errors import ToolFailed
from tools.forms.arguments import ArgumentsForm
from tools.kinds.python import find_error_line
from tools.models import Tool
from tools.services.show_request import show_request
from tools.services.try_tool import TRY_SECONDS, TryResult, try_tool
from tools.spec import ToolSpec
from tools.text.storable import replace_unstorable
from tools.typed_generics import StrOrPromise


class RequestLabels(NamedTuple):
    """Labels for the input of a call, by kind of tool."""

    preview_button: StrOrPromise
    sent_title: StrOrPromise
    unknown_title: StrOrPromise
    """After a failure, when it is not known whether anything was sent."""
    preview_title: StrOrPromise
    empty_text: StrOrPromise


HTTP_LABELS = RequestLabels(
    preview_button=_("Preview request"),
    sent_title=_("Request sent"),
    unknown_title=_("Request"),
    preview_title=_("Request preview"),
    empty_text=_("The request and the result for the model appear here."),
)
LINES_AROUND = 4
"""Lines of code shown before and after the one that failed."""


class CodeLine(NamedTuple):
    """A line of a tool's code."""

    number: int
    text: str
    is_wrong: bool


LABELS_BY_KIND = {
    "sql": RequestLabels(
        preview_button=_("Preview query"),
        sent_title=_("Query sent"),
        unknown_title=_("Query"),
        preview_title=_("Query preview"),
        empty_text=_("The query and the result for the model appear here."),
    ),
    "python": RequestLabels(
        preview_button=_("Preview input"),
        sent_title=_("Input of the code"),
        unknown_title=_("Input"),
        preview_title=_("Input preview"),
        empty_text=_("The input and the result for the model appear here."),
    ),
    "function": RequestLabels(
        preview_button=_("Preview input"),
        sent_title=_("Input of the function"),
        unknown_title=_("Input"),
        preview_title=_("Input preview"),
        empty_text=_("The input and the result for the model appear here."),
    ),
}
"""By kind of tool; the others send a request."""


def try_tool_view(site: Any, request: HttpRequest, pk: int) -> HttpResponse:
    """Show the form on GET; make the call or preview it on POST."""
    tool: Tool | None = site.get_object(request, str(pk))
    if tool is None:
        raise Http404
    if not site.has_view_permission(request, tool):
        raise PermissionDenied
    spec = freeze_tool(tool)
    form = ArgumentsForm(schema=spec.args_schema)
    result: TryResult | None = None
    asked = refused = ""
    if request.method == "POST":
        form = ArgumentsForm(request.POST, request.FILES, schema=spec.args_schema)
        if form.is_valid():
            asked, refused = preview_request(spec, form.tool_input())
            if "show" not in request.POST:
                result = try_tool(tool, form.tool_input(), by=request.user)  # type: ignore[arg-type]  # staff
    context = {
        **site.admin_site.each_context(request),
        "title": _("Test %(tool)s") % {"tool": tool.name},
        "opts": site.model._meta,
        "tool": tool,
        "spec": spec,
        "words": LABELS_BY_KIND.get(spec.kind, HTTP_LABELS),
        "form": form,
        "asked": asked,
        "refused": refused,
        "result": result,
        "code_lines": list_failed_lines(spec, result.error) if result else [],
        "seconds": int(min(TRY_SECONDS, spec.timeout)),
        "can_change": site.has_change_permission(request, tool),
    }
    return render(request, "admin/tools/tool/try.html", context)


def list_failed_lines(spec: ToolSpec, error: str) -> list[CodeLine]:
    """Return the lines around the one that an error of Python code names."""
    wrong = find_error_line(error) if spec.kind == "python" else None
    if wrong is None:
        return []
    lines = str(spec.config.get("code", "")).splitlines()
    first = max(wrong - LINES_AROUND, 1)
    shown = lines[first - 1 : wrong + LINES_AROUND]
    return [CodeLine(n, text, n == wrong) for n, text in enumerate(shown, first)]


def preview_request(spec: ToolSpec, tool_input: Any) -> tuple[str, str]:
    """Return the request, or why none can be sent."""
    try:
        return replace_unstorable(show_request(spec, tool_input)), ""
    except ToolFailed as refused:
        return "", replace_unstorable(str(refused))
