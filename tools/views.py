"""The pages about tools outside of the administration."""

from typing import cast

from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from tools.definition.freeze import freeze_tool
from tools.models import Tool
from tools.ui.argument_rows import build_argument_rows
from tools.ui.labels import (
    KIND_LABELS,
    can_edit_tool,
    describe_tool_access,
    describe_tool_hosts,
    find_call_flaw,
)
from tools.usage import with_usage

TOOLS_PER_PAGE = 50


@require_GET
def tool_list(request: HttpRequest) -> HttpResponse:
    """Show the visible tools that are not archived."""
    user = cast(User, request.user)
    rows = Tool.objects.visible_to(user).select_related("credential", "mcp_server")
    tools = with_usage(rows.filter(archived_at=None))
    query = request.GET.get("q", "").strip()
    if query:
        tools = tools.filter(Q(name__icontains=query) | Q(description__icontains=query))
    page = Paginator(tools.order_by("name", "pk"), TOOLS_PER_PAGE).get_page(
        request.GET.get("page")
    )
    context = {
        "page": page,
        "tools": [
            (tool, find_call_flaw(tool) if tool.enabled else "") for tool in page
        ],
        "query": query,
        "kind_words": KIND_LABELS,
        "may_add": user.is_staff and user.has_perm("tools.add_tool"),
    }
    return render(request, "tools/list.html", context)


@require_GET
def tool_detail(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the definition of a tool."""
    user = cast(User, request.user)
    rows = Tool.objects.visible_to(user).select_related(
        "owner", "credential", "mcp_server"
    )
    tool = get_object_or_404(with_usage(rows), slug=slug)
    spec = freeze_tool(tool)
    context = {
        "tool": tool,
        "spec": spec,
        "call_flaw": find_call_flaw(tool),
        "rows": build_argument_rows(spec.args_schema),
        "kind_word": KIND_LABELS.get(tool.kind, tool.kind),
        "who_may": describe_tool_access(tool),
        "hosts": describe_tool_hosts(tool),
        "may_edit": can_edit_tool(tool, user),
        "may_try": user.is_staff and user.has_perm("tools.view_tool"),
    }
    return render(request, "tools/detail.html", context)
