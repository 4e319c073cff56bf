"""The list of agents."""

import re

from django.core.paginator import Paginator
from django.db.models import Count, Max
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest
from runs.models import Agent
from runs.services.agents.run_counts import count_agent_runs
from runs.ui.kind_labels import list_kind_choices
from runs.views.agents.filters import (
    filter_agents,
    list_agent_filter_choices,
    read_agent_filters,
)

AGENTS_PER_PAGE = 60


@require_GET
def agent_list(request: HtmxRequest) -> HttpResponse:
    filters = read_agent_filters(request)
    visible = Agent.objects.visible_to(request.user).filter(is_playground=False)
    names = filter_agents(visible, filters).values_list("name", "pk")
    numbers = [pk for _name, pk in sorted(names, key=get_natural_order)]
    page = Paginator(numbers, AGENTS_PER_PAGE).get_page(request.GET.get("page"))
    rows = (
        Agent.objects.select_related("provider", "owner")
        .annotate(
            tool_count=Count("uses", distinct=True),
            version=Max("versions__number"),
        )
        .in_bulk(list(page))
    )
    runs = count_agent_runs(list(rows), request.user)
    editable = Agent.objects.editable_by(request.user).filter(pk__in=rows)
    context = {
        "agents": [rows[pk] for pk in page if pk in rows],
        "page": page,
        "away": filters.archived,
        "filters": filters,
        "choices": list_agent_filter_choices(visible),
        "clear_url": "?archived=1" if filters.archived else "?",
        "page_query": filters.build_query(),
        "here": request.get_full_path(),
        "runs": runs,
        "editable": set(editable.values_list("pk", flat=True)),
        "titles": dict(list_kind_choices()),
    }
    return render(request, "agents/list.html", context)


def get_natural_order(row: tuple[str, int]) -> tuple[list[tuple[bool, int, str]], int]:
    """Return the sort key of a name and number: `Desk 2` comes before `Desk 10`."""
    name, number = row
    parts = re.split(r"([0-9]{1,18})", name.casefold())
    return [
        (n % 2 == 1, int(part) if n % 2 else 0, part) for n, part in enumerate(parts)
    ], number
