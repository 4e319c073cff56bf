"""The list of runs: filters in the URL, keyset pagination, live rows."""

from dataclasses import replace
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest, render_page_or_part
from runs.models import Agent, AgentVersion, Run, RunTag, SavedFilter, Schedule
from runs.ui.format import number
from runs.ui.list_state import get_list_state, knows_list_state
from runs.ui.run_list_rows import annotate_current_tool, build_run_rows
from runs.views.run_list.filters import (
    SINCE_LABELS,
    SORT_LABELS,
    STATUS_GROUPS,
    TEST_LABELS,
    RunFilters,
    query_visible_agents,
    read_filters,
)
from runs.views.run_list.pagination import (
    COUNT_LIMIT,
    build_run_queries,
    count_found_runs,
    paginate_runs,
)

RUN_LIST_URL = reverse_lazy("run-list")
COUNTED_GROUPS = ("unfinished", "needs")
"""Status groups with a count."""
MAX_OPTIONS = 200
"""Options of a filter; others can be given in the URL."""


@require_GET
def run_list(request: HtmxRequest) -> HttpResponse:
    """Show the visible runs; to HTMX only the rows, if they may have changed."""
    if not request.htmx and "" in request.GET.values():
        return redirect(build_url_without_empty(request))
    visible = Run.objects.visible_to(request.user)
    state = get_list_state(visible)
    if knows_list_state(request, state):
        return HttpResponse(status=204)
    filters, problems = read_filters(request.GET)
    rows = annotate_current_tool(visible).prefetch_related("tags")
    queries = build_run_queries(rows, filters, user=request.user)
    page = paginate_runs(queries, request.GET, filters.sort)
    is_cut = bool(page.before or page.after)
    context = {
        "rows": build_run_rows(page.runs),
        "is_whole": filters.is_filtered and not is_cut,
        "is_counted": filters.is_filtered and is_cut,
        "is_live": not (filters.sort or is_cut),
        "state": state,
        "has_unfinished": not filters.sort
        and any(not run.is_over for run in page.runs),
        "here": request.get_full_path(),
        "newer": _build_page_url(filters, "after", page.before),
        "older": _build_page_url(filters, "before", page.after),
        "filters": filters,
        "sorts": [
            (key, word, filters.build_query(sort=key), key == filters.sort)
            for key, word in SORT_LABELS.items()
        ],
        "groups": build_status_tabs(filters, request.user),
    }
    if not request.htmx:
        context |= build_filter_panel(filters, request.user) | {"problems": problems}
    return render_page_or_part(request, "runs/list.html", "runs/_list.html", context)


def build_url_without_empty(request: HtmxRequest) -> str:
    """Return the URL without parameters that a form left empty."""
    query = request.GET.copy()
    for name in list(query):
        query.setlist(name, [value for value in query.getlist(name) if value])
    return f"{request.path}?{query.urlencode()}".removesuffix("?")


@require_GET
def run_groups(request: HtmxRequest) -> HttpResponse:
    """Render the status tabs with their counts."""
    filters, _problems = read_filters(request.GET)
    context = {"filters": filters, "groups": build_status_tabs(filters, request.user)}
    return render(request, "runs/_groups.html", context)


@require_GET
def run_count(request: HtmxRequest) -> HttpResponse:
    """Render how many runs match; requested after the list, which does not wait."""
    filters, _problems = read_filters(request.GET)
    visible = Run.objects.visible_to(request.user)
    found = count_found_runs(build_run_queries(visible, filters, user=request.user))
    context = {"found": min(found, COUNT_LIMIT), "is_more": found > COUNT_LIMIT}
    return render(request, "runs/_count.html", context)


def _build_page_url(filters: RunFilters, side: str, place: str) -> str:
    return f"{filters.build_query()}&{side}={place}".replace("?&", "?") if place else ""


def build_status_tabs(
    filters: RunFilters, user: User
) -> list[tuple[str, str, bool, str]]:
    """Return label, URL, whether it is current, and the count of each status group.

    Unfinished runs have a small index; ended ones are not counted. With other filters
    there are no counts.
    """
    is_plain = not (filters.sort or replace(filters, status="").is_filtered)
    counts = (
        {key: format_group_count(key, user) for key in COUNTED_GROUPS}
        if is_plain
        else {}
    )
    return [
        (
            str(word),
            f"{RUN_LIST_URL}{filters.build_query(status=key)}",
            key == filters.status,
            counts.get(key, ""),
        )
        for key, (word, _) in STATUS_GROUPS.items()
    ]


def format_group_count(group: str, user: User) -> str:
    """Return how many runs are in a group; empty for none."""
    filters = RunFilters(status=group)
    found = count_found_runs(
        build_run_queries(Run.objects.visible_to(user), filters, user=user)
    )
    return f"{number(COUNT_LIMIT)}+" if found > COUNT_LIMIT else str(found or "")


def build_filter_panel(filters: RunFilters, user: User) -> dict[str, Any]:
    """Return the options of the filters."""
    versions = AgentVersion.objects.filter(
        agent=filters.agent, agent__in=query_visible_agents(user)
    )
    saved = list(SavedFilter.objects.filter(owner=user))
    now = filters.build_query().removeprefix("?")
    return {
        "agents": query_visible_agents(user)[:MAX_OPTIONS],
        "versions": versions.values_list("number", flat=True)[:MAX_OPTIONS],
        "people": User.objects.order_by("username")[:MAX_OPTIONS]
        if user.is_superuser
        else (),
        "models": list_agent_models(user),
        "tags": RunTag.objects.filter(run__in=Run.objects.visible_to(user))
        .order_by("name")
        .values_list("name", flat=True)
        .distinct()[:MAX_OPTIONS],
        "schedules": list_schedule_options(user),
        "since_choices": SINCE_LABELS.items(),
        "test_choices": TEST_LABELS.items(),
        "sees_all": user.is_superuser,
        "everyone_url": filters.build_query(mine=False),
        "own": filters.build_query(mine=True),
        "saved": [(one, f"?{one.query}", one.query == now) for one in saved],
        "is_saved": any(one.query == now for one in saved),
        "query": now,
        "exports": [
            (kind, f"{filters.build_query()}&as={kind}") for kind in ("csv", "json")
        ],
    }


def list_agent_models(user: User) -> list[str]:
    """Return the models of visible agents."""
    names = (
        Agent.objects.visible_to(user).order_by("model").values_list("model", flat=True)
    )
    return list(names.distinct()[:MAX_OPTIONS])


def list_schedule_options(user: User) -> list[tuple[str, str]]:
    """Return number and name of visible schedules, with the owner of others' ones."""
    rows = Schedule.objects.visible_to(user).select_related("owner").defer("inputs")
    return [
        (str(one.pk), one.name if one.owner == user else f"{one.name} ({one.owner})")
        for one in rows[:MAX_OPTIONS]
    ]
