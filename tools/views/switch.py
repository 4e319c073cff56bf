"""Enabling a tool, and its revisions."""

from typing import cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from tools.definition.restore_revision import restore_revision
from tools.definition.save import save_tool
from tools.models import Tool
from tools.ui.labels import KIND_LABELS, can_edit_tool
from tools.ui.revision_diff import diff_revision


@require_POST
def enable_tool(request: HttpRequest, slug: str) -> HttpResponse:
    """Enable or disable a tool at once; unsaved changes of its form stay."""
    tool = find_editable_tool(request, slug)
    tool.enabled = "enabled" in request.POST
    note = "Enabled" if tool.enabled else "Disabled"
    save_tool(tool, by=cast(User, request.user), note=note)
    if request.headers.get("HX-Request"):
        context = {"tool": tool, "is_switched": True}
        return render(request, "tools/_switch.html", context)
    return redirect("tool-detail", slug)


@require_http_methods(["GET", "POST"])
def tool_revisions(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the revisions of a tool; restore one as a new revision."""
    tool = find_editable_tool(request, slug)
    if request.method == "POST":
        number = request.POST.get("number", "")
        given = int(number[:9]) if number.isascii() and number.isdigit() else 0
        revision = get_object_or_404(tool.revisions, number=given)
        restored = restore_revision(revision, by=cast(User, request.user))
        text = _("Restored revision %(old)d as revision %(new)d.")
        messages.success(request, text % {"old": given, "new": restored.revision})
        return redirect("tool-detail", slug)
    rows = tool.revisions.select_related("by")
    context = {
        "tool": tool,
        "kind_word": KIND_LABELS.get(tool.kind, tool.kind),
        "revisions": [(row, diff_revision(row)) for row in rows],
    }
    return render(request, "tools/revisions.html", context)


def find_editable_tool(request: HttpRequest, slug: str) -> Tool:
    """Return a tool that the person may edit; strangers get 404, others 403."""
    user = cast(User, request.user)
    tool = get_object_or_404(Tool.objects.visible_to(user), slug=slug)
    if not can_edit_tool(tool, user):
        raise PermissionDenied
    return tool
