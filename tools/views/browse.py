"""The list of tools, and the page of a tool for those who may not edit it."""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from tools.definition.freeze import freeze_tool
from tools.forms.kinds import TOOL_FORMS
from tools.models import Tool
from tools.ui.argument_rows import build_argument_rows
from tools.ui.labels import (
    KIND_LABELS,
    describe_pending_change,
    describe_tool_access,
    describe_tool_hosts,
    find_call_flaw,
)
from tools.usage import UsageTotals, load_usage_totals
from tools.views.filters import (
    SORTS,
    USAGE_SORTS,
    filter_tools,
    list_sorted_keys,
    list_tool_filter_choices,
    read_tool_filters,
)
from tools.views.trial_pane import TrialPane

TOOLS_PER_PAGE = 50


@require_GET
def tool_list(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    filters = read_tool_filters(request)
    visible = Tool.objects.visible_to(user)
    sort = filters.sort or "name"
    totals = load_usage_totals() if sort in USAGE_SORTS else {}
    keys = list_sorted_keys(filter_tools(visible, filters), sort, totals)
    page = Paginator(keys, TOOLS_PER_PAGE).get_page(request.GET.get("page"))
    tools = load_listed_tools(list(page), totals or load_usage_totals(list(page)))
    editable = list_editable_pks(user, list(page))
    context = {
        "page": page,
        "rows": [
            ToolRow(
                tool,
                describe_pending_change(tool),
                find_call_flaw(tool) if tool.enabled else "",
                tool.pk in editable,
            )
            for tool in tools
        ],
        "may_edit": bool(editable),
        "filters": filters,
        "choices": list_tool_filter_choices(visible, user),
        "sort_queries": {name: filters.build_query(sort=name) for name in SORTS},
        "page_query": filters.build_query(),
        "here": request.get_full_path(),
        "kind_words": KIND_LABELS,
        "kinds": list_new_kinds(),
        "may_add": user.is_staff and user.has_perm("tools.add_tool"),
        "has_tools": bool(page) or visible.exists(),
    }
    return render(request, "tools/list.html", context)


def load_listed_tools(keys: list[int], totals: Mapping[int, UsageTotals]) -> list[Any]:
    """Return the tools in this order, with `calls_30` and `failures_30`."""
    related = Tool.objects.select_related("credential", "mcp_server", "owner", "pin")
    found: dict[int, Any] = related.in_bulk(keys)
    for key, tool in found.items():
        usage = totals.get(key, UsageTotals())
        tool.calls_30, tool.failures_30 = usage.calls, usage.failures
    return [found[key] for key in keys if key in found]


class ToolRow(NamedTuple):
    """A tool in the list, and what is wrong with it."""

    tool: Any
    pending_change: str
    call_flaw: str
    is_editable: bool


def list_editable_pks(user: User, pks: list[int]) -> set[int]:
    if not (user.is_staff and user.has_perm("tools.change_tool")):
        return set()
    mine = Tool.objects.editable_by(user).filter(pk__in=pks)
    return set(mine.values_list("pk", flat=True))


def list_new_kinds() -> list[tuple[str, Any]]:
    """Return the kinds that a person creates in a form, with their labels."""
    return [
        (kind, form.kind_label)
        for kind, form in TOOL_FORMS.items()
        if form.can_be_created
    ]


def show_tool(
    request: HttpRequest, tool: Any, pane: TrialPane | None = None
) -> HttpResponse:
    """Show the definition of a tool, with `pane` to those who may test it."""
    spec = freeze_tool(tool)
    context = {
        "tool": tool,
        "spec": spec,
        "call_flaw": find_call_flaw(tool),
        "rows": build_argument_rows(spec.args_schema),
        "kind_word": KIND_LABELS.get(tool.kind, tool.kind),
        "who_may": describe_tool_access(tool),
        "hosts": describe_tool_hosts(tool),
        "pane": pane,
    }
    return render(request, "tools/detail.html", context)
