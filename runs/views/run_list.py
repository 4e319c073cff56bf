"""The list of runs: filters in the address, keyset pages, rows that move on."""

from dataclasses import replace
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse_lazy
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest, page_or_part
from runs.models import Agent, AgentVersion, Run, RunTag, SavedFilter, Schedule
from runs.views.list_rows import rows_of, with_doing
from runs.views.run_filters import (
    GROUPS,
    SINCE,
    SORTS,
    TESTS,
    Filters,
    agents_of,
    read_filters,
)
from runs.views.run_pages import COUNTED, counted, found_runs, page_of

LIST = reverse_lazy("run-list")
SMALL = ("unfinished", "needs")
"""The groups that are counted."""
CHOICES = 200
"""Of a filter's list; more are written into the address."""


@require_GET
def run_list(request: HtmxRequest) -> HttpResponse:
    """Show the runs that one may see."""
    filters, problems = read_filters(request.GET)
    visible = Run.objects.visible_to(request.user)
    rows = with_doing(visible).prefetch_related("tags")
    queries = found_runs(rows, filters, user=request.user)
    page = page_of(queries, request.GET, filters.sort)
    is_cut = bool(page.before or page.after)
    context = {
        "rows": rows_of(page.runs),
        "is_whole": filters.any and not is_cut,
        "is_counted": filters.any and is_cut,
        "is_moving": not filters.sort and any(not run.is_over for run in page.runs),
        "here": request.get_full_path(),
        "newer": _beside(filters, "after", page.before),
        "older": _beside(filters, "before", page.after),
        "filters": filters,
        "sorts": [
            (key, word, filters.address(sort=key), key == filters.sort)
            for key, word in SORTS.items()
        ],
        "groups": groups_of(filters, request.user),
    }
    if not request.htmx:
        context |= panel_of(filters, request.user) | {"problems": problems}
    return page_or_part(request, "runs/list.html", "runs/_list.html", context)


@require_GET
def run_groups(request: HtmxRequest) -> HttpResponse:
    """Give the tabs above the list, with what is unfinished now."""
    filters, _ = read_filters(request.GET)
    context = {"filters": filters, "groups": groups_of(filters, request.user)}
    return render(request, "runs/_groups.html", context)


@require_GET
def run_count(request: HtmxRequest) -> HttpResponse:
    """Say how many runs pass; asked for after the list, which does not wait for it."""
    filters, _ = read_filters(request.GET)
    visible = Run.objects.visible_to(request.user)
    found = counted(found_runs(visible, filters, user=request.user))
    context = {"found": min(found, COUNTED), "is_more": found > COUNTED}
    return render(request, "runs/_count.html", context)


def _beside(filters: Filters, side: str, place: str) -> str:
    return f"{filters.address()}&{side}={place}".replace("?&", "?") if place else ""


def groups_of(filters: Filters, user: User) -> list[tuple[str, str, bool, str]]:
    """Return word, address, whether it is shown now, and the count where it is small.

    All unfinished runs fit into one small index; those that ended are not counted, and
    none where something else is filtered: a count is of the list it leads to.
    """
    is_plain = not (filters.sort or replace(filters, status="").any)
    counts = {key: count_of(key, user) for key in SMALL} if is_plain else {}
    return [
        (
            word,
            f"{LIST}{filters.address(status=key)}",
            key == filters.status,
            counts.get(key, ""),
        )
        for key, (word, _) in GROUPS.items()
    ]


def count_of(group: str, user: User) -> str:
    """Return how many runs are in a group; empty where there are none."""
    filters = Filters(status=group)
    found = counted(found_runs(Run.objects.visible_to(user), filters, user=user))
    return f"{COUNTED:,}+" if found > COUNTED else str(found or "")


def panel_of(filters: Filters, user: User) -> dict[str, Any]:
    """Return what the filters can be set to."""
    versions = AgentVersion.objects.filter(
        agent=filters.agent, agent__in=agents_of(user)
    )
    saved = list(SavedFilter.objects.filter(owner=user))
    now = filters.address().removeprefix("?")
    return {
        "agents": agents_of(user)[:CHOICES],
        "versions": versions.values_list("number", flat=True)[:CHOICES],
        "people": User.objects.order_by("username")[:CHOICES]
        if user.is_superuser
        else (),
        "models": models_of(user),
        "tags": RunTag.objects.filter(run__in=Run.objects.visible_to(user))
        .order_by("name")
        .values_list("name", flat=True)
        .distinct()[:CHOICES],
        "schedules": schedules_of(user),
        "sinces": SINCE.items(),
        "testses": TESTS.items(),
        "sees_all": user.is_superuser,
        "everyones": filters.address(mine=False),
        "own": filters.address(mine=True),
        "saved": [(one, f"?{one.query}", one.query == now) for one in saved],
        "is_saved": any(one.query == now for one in saved),
        "query": now,
        "exports": [
            (kind, f"{filters.address()}&as={kind}") for kind in ("csv", "json")
        ],
    }


def models_of(user: User) -> list[str]:
    """Return the models of the agents one may see."""
    names = (
        Agent.objects.visible_to(user).order_by("model").values_list("model", flat=True)
    )
    return list(names.distinct()[:CHOICES])


def schedules_of(user: User) -> list[tuple[str, str]]:
    """Return the schedules to choose from, each with its number as the address has it.

    Those of others come with the name of their owner.
    """
    rows = Schedule.objects.visible_to(user).select_related("owner").defer("inputs")
    return [
        (str(one.pk), one.name if one.owner == user else f"{one.name} ({one.owner})")
        for one in rows[:CHOICES]
    ]
