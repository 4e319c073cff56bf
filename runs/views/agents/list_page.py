"""The list of agents."""

from django.core.paginator import Paginator
from django.db.models import Count, Max, Q
from django.http import HttpResponse
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest, render_page_or_part
from runs.models import Agent, Run
from runs.ui.kind_labels import list_kind_choices
from runs.views.agents.filters import (
    filter_agents,
    list_agent_filter_choices,
    read_agent_filters,
)

AGENTS_PER_PAGE = 60


@require_GET
def agent_list(request: HtmxRequest) -> HttpResponse:
    """Show the agents visible to the user."""
    filters = read_agent_filters(request)
    visible = Agent.objects.visible_to(request.user).filter(is_playground=False)
    mine = Q(runs__in=Run.objects.visible_to(request.user))
    agents = (
        filter_agents(visible, filters)
        .select_related("provider", "owner")
        .annotate(
            run_count=Count("runs", filter=mine, distinct=True),
            last_run=Max("runs__created_at", filter=mine),
            tool_count=Count("uses", distinct=True),
            version=Max("versions__number"),
        )
        .order_by("name", "pk")
    )
    page = Paginator(agents, AGENTS_PER_PAGE).get_page(request.GET.get("page"))
    editable = Agent.objects.editable_by(request.user).filter(
        pk__in=[a.pk for a in page]
    )
    context = {
        "agents": page,
        "away": filters.archived,
        "filters": filters,
        "choices": list_agent_filter_choices(visible),
        "clear_url": "?archived=1" if filters.archived else "?",
        "page_query": filters.build_query(),
        "here": request.get_full_path(),
        "editable": set(editable.values_list("pk", flat=True)),
        "titles": dict(list_kind_choices()),
    }
    return render_page_or_part(
        request, "agents/list.html", "agents/_list.html", context
    )
