"""Pages on which everybody sees what tools there are."""

from typing import cast

from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from tools.argument_rows import rows_of
from tools.models import Tool
from tools.services import tool_spec_of
from tools.tool_words import KIND_WORDS, call_flaw, hosts_of, may_edit, who_may
from tools.usage import with_usage

ON_A_PAGE = 50


@require_GET
def tool_list(request: HttpRequest) -> HttpResponse:
    """Show the tools a person may see, without the archive."""
    user = cast(User, request.user)
    rows = Tool.objects.visible_to(user).select_related("credential", "mcp_server")
    tools = with_usage(rows.filter(archived_at=None))
    query = request.GET.get("q", "").strip()
    if query:
        tools = tools.filter(Q(name__icontains=query) | Q(description__icontains=query))
    page = Paginator(tools.order_by("name", "pk"), ON_A_PAGE).get_page(
        request.GET.get("page")
    )
    context = {
        "page": page,
        "tools": [(tool, call_flaw(tool) if tool.enabled else "") for tool in page],
        "query": query,
        "kind_words": KIND_WORDS,
        "may_add": user.is_staff and user.has_perm("tools.add_tool"),
    }
    return render(request, "tools/list.html", context)


@require_GET
def tool_detail(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what a tool does, with what, and who may use it."""
    user = cast(User, request.user)
    rows = Tool.objects.visible_to(user).select_related(
        "owner", "credential", "mcp_server"
    )
    tool = get_object_or_404(with_usage(rows), slug=slug)
    spec = tool_spec_of(tool)
    context = {
        "tool": tool,
        "spec": spec,
        "call_flaw": call_flaw(tool),
        "rows": rows_of(spec.args_schema),
        "kind_word": KIND_WORDS.get(tool.kind, tool.kind),
        "who_may": who_may(tool),
        "hosts": hosts_of(tool),
        "may_edit": may_edit(tool, user),
        "may_try": user.is_staff and user.has_perm("tools.view_tool"),
    }
    return render(request, "tools/detail.html", context)
