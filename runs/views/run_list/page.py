"""The list of runs: filters in the URL, keyset pagination, live rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest, render_page_or_part, wants_part
from runs.models import AgentVersion, Run, SavedFilter, Schedule
from runs.time_zone import is_viewer_zone_known
from runs.ui.answer_start import annotate_answer_start
from runs.ui.format import number
from runs.ui.list_of_run import build_list_query
from runs.ui.list_state import LIST_STATE_HEADER, get_list_state, knows_list_state
from runs.ui.run_list_rows import annotate_current_tool, build_run_rows
from runs.views.run_list.chips import build_filter_chips
from runs.views.run_list.columns import (
    COLUMN_LABELS,
    get_run_columns,
    list_column_choices,
)
from runs.views.run_list.facets import build_facets
from runs.views.run_list.figures import build_empty_tiles, build_figures
from runs.views.run_list.filter_queries import (
    MAX_COMPARED_RUNS,
    get_first_searched_run,
    query_visible_agents,
)
from runs.views.run_list.filters import (
    SINCE_LABELS,
    SORT_LABELS,
    RunFilters,
    read_filters,
)
from runs.views.run_list.pagination import (
    COUNT_LIMIT,
    build_run_queries,
    count_found_runs,
    load_page_runs,
    paginate_runs,
)
from runs.whole_number import parse_whole_number

LIST_TOP_HEADER = "X-List-Top"
"""What a scrolled list sends with a poll: the number of its first run."""
RUN_LIST_URL = reverse_lazy("run-list")
MAX_OPTIONS = 200
"""Options of a filter; others can be given in the URL."""
LISTED_PARAMETERS = ("status", "agent", "user", "source", "error")
"""Those that have all values in one parameter."""
PLACE_PARAMETERS = ("before", "after", "figures")
"""What a URL of the list has besides filters."""


class ListTab(NamedTuple):
    """A link above the list."""

    label: str
    url: str
    is_on: bool
    runs: str = ""
    """How many it has, if that is counted."""


@require_GET
def run_list(request: HtmxRequest) -> HttpResponse:
    """Show the visible runs; to HTMX only the rows, if they may have changed."""
    filters, problems = read_filters(request.GET)
    if not request.htmx and not problems and has_long_query(request):
        return redirect(build_short_url(request, filters))
    visible = Run.objects.visible_to(request.user)
    top = read_scrolled_top(request)
    state = get_list_state(visible, request.user, *([] if top is None else [top]))
    if knows_list_state(request, state):
        return HttpResponse(status=204)
    context = build_list(request, filters, top=top)
    context |= {"state": state, "problems": problems}
    if is_poll(request):
        return render(request, "runs/_list.html", context | {"is_poll": True})
    context |= build_list_head(filters, request.user)
    context |= {"chips": build_filter_chips(filters, request.user)}
    context |= {"versions": list_version_options(filters, request.user)}
    if not wants_part(request):
        context |= build_filter_panel(request.user)
        context |= {"column_choices": list_column_choices(context["columns"])}
        context |= build_first_figures(request, filters)
    response = render_page_or_part(
        request, "runs/list.html", "runs/_filtered.html", context
    )
    if wants_part(request):
        response["HX-Push-Url"] = context["here"]
    return response


def build_first_figures(request: HtmxRequest, filters: RunFilters) -> dict[str, Any]:
    """Return the figures if the URL asks for them; a script loads them later."""
    if request.GET.get("figures") == "1":
        figures = build_figures(filters, request.user)
        return figures | {"is_zone_known": is_viewer_zone_known(request)}
    query = filters.build_query()
    return {
        "tiles": build_empty_tiles(),
        "facets": build_facets(filters, request.user),
        "figures_url": f"{query}&figures=1".replace("?&", "?"),
    }


def is_poll(request: HttpRequest) -> bool:
    """Whether a list that is shown asks for its changes."""
    return LIST_STATE_HEADER in request.headers


def read_scrolled_top(request: HttpRequest) -> int | None:
    """Return the first row of a list that is scrolled; None if its top is in sight."""
    return parse_whole_number(request.headers.get(LIST_TOP_HEADER, ""))


def build_list(
    request: HtmxRequest, filters: RunFilters, *, top: int | None = None
) -> dict[str, Any]:
    """Return the rows of a page and what stands around them.

    Runs above `top` are counted and not shown, so that nothing moves while a person
    reads further down.
    """
    visible = Run.objects.visible_to(request.user)
    queries = build_run_queries(visible, filters, user=request.user)
    newcomers = 0
    if top is not None:
        newcomers = count_found_runs([one.filter(pk__gt=top) for one in queries])
        queries = [one.filter(pk__lte=top) for one in queries]
    page = paginate_runs(queries, request.GET, filters.sort, gather=filters.is_far_back)
    rows = annotate_answer_start(annotate_current_tool(visible))
    runs = load_page_runs(rows.prefetch_related("tags"), page.rows)
    columns = get_run_columns(request.user, sort=filters.sort)
    return {
        "rows": build_run_rows(runs),
        "left_out": 0 if runs else count_left_out_tests(filters, request.user),
        "without_text": ""
        if runs or not filters.q
        else format_count(replace(filters, q=""), request.user),
        "without_sort": ""
        if runs or not filters.sort
        else format_unsorted_count(filters, request.user),
        "is_live": not (filters.sort or page.before or page.after)
        or is_first_page(request, filters),
        "has_unfinished": not filters.sort and any(not run.is_over for run in runs),
        "here": build_short_url(request, filters),
        "newer": _build_page_url(filters, "after", page.before),
        "older": _build_page_url(filters, "before", page.after),
        "filters": filters,
        "listed": build_list_query(filters.build_query()),
        "is_short_search": get_first_searched_run(filters) is not None,
        "compared": number(MAX_COMPARED_RUNS),
        "newcomers": newcomers,
        "columns": columns,
        "heads": build_column_heads(columns, filters),
    }


def count_left_out_tests(filters: RunFilters, user: User) -> int:
    """Return how many test runs an empty list would show, were it asked for them."""
    if filters.test_choice != "without":
        return 0
    visible = Run.objects.visible_to(user)
    asked = replace(filters, tests="only", sort="")
    return count_found_runs(build_run_queries(visible, asked, user=user))


class ColumnHead(NamedTuple):
    name: str
    label: str
    url: str
    """Sorts the list by it; empty if it cannot be sorted by."""
    is_sorted: bool


def build_column_heads(columns: Sequence[str], filters: RunFilters) -> list[ColumnHead]:
    """Return the heads of the columns after the input."""
    heads = []
    for name in columns:
        sort = "" if name == "created" else name
        url = filters.build_query(sort=sort) if sort in SORT_LABELS else ""
        is_sorted = bool(url) and sort == filters.sort
        heads.append(ColumnHead(name, str(COLUMN_LABELS[name]), url, is_sorted))
    return heads


def is_first_page(request: HttpRequest, filters: RunFilters) -> bool:
    """Whether new runs would appear on this page of the list."""
    return not filters.sort and not {"before", "after"} & request.GET.keys()


def has_long_query(request: HttpRequest) -> bool:
    """Whether a form wrote the URL: it has empty or repeated parameters."""
    query = request.GET
    return "" in query.values() or any(
        len(query.getlist(name)) > 1 for name in LISTED_PARAMETERS
    )


def build_short_url(request: HttpRequest, filters: RunFilters) -> str:
    """Return the shortest URL of the same list, at the same page."""
    url = f"{RUN_LIST_URL}{filters.build_query()}"
    for name in PLACE_PARAMETERS:
        if value := request.GET.get(name):
            place = (
                value if value.isascii() and value.replace("~", "").isalnum() else ""
            )
            url += f"&{name}={place}" if place else ""
    return url.replace("?&", "?").removesuffix("?")


@require_GET
def run_groups(request: HtmxRequest) -> HttpResponse:
    filters, _problems = read_filters(request.GET)
    context = {"filters": filters, "groups": build_list_tabs(filters, request.user)}
    return render(request, "runs/_groups.html", context)


@require_GET
def run_figures(request: HtmxRequest) -> HttpResponse:
    """Render figures and counts; requested after the list, which does not wait."""
    filters, _problems = read_filters(request.GET)
    context = {"filters": filters} | build_figures(filters, request.user)
    context |= {"is_zone_known": is_viewer_zone_known(request)}
    return render(request, "runs/_figures_and_counts.html", context)


def _build_page_url(filters: RunFilters, side: str, place: str) -> str:
    return f"{filters.build_query()}&{side}={place}".replace("?&", "?") if place else ""


def build_list_head(filters: RunFilters, user: User) -> dict[str, Any]:
    """Return the tabs, and what the list as it is can be saved as."""
    saved = SavedFilter.objects.filter(owner=user)
    now = filters.build_query().removeprefix("?")
    return {
        "groups": build_list_tabs(filters, user),
        "saved": next(
            (one for one in saved if normalize_query(one) == f"?{now}"), None
        ),
        "query": now,
        "exports": [
            (kind, f"{filters.build_query()}&as={kind}".replace("?&", "?"))
            for kind in ("csv", "json")
        ],
    }


def build_list_tabs(filters: RunFilters, user: User) -> list[ListTab]:
    """Return the usual lists and the saved ones.

    Unfinished runs have a small index, so they are counted here; ended ones are not.
    """
    now = filters.build_query()
    usual = [
        (_("All runs"), RunFilters(), ""),
        (_("Unfinished"), RunFilters(status=("unfinished",)), "unfinished"),
        (_("Needs attention"), RunFilters(status=("needs",)), "needs"),
    ]
    if user.is_superuser:
        usual.append((_("Mine"), RunFilters(mine=True), ""))
    tabs = [
        ListTab(
            label,
            f"{RUN_LIST_URL}{one.build_query()}".removesuffix("?"),
            one.build_query() == now,
            format_count(one, user) if group else "",
        )
        for label, one, group in usual
    ]
    return tabs + [
        ListTab(one.name, f"{RUN_LIST_URL}?{one.query}", normalize_query(one) == now)
        for one in SavedFilter.objects.filter(owner=user)
    ]


def normalize_query(saved: SavedFilter) -> str:
    """Return the query of a saved filter as the list writes it today."""
    return read_filters(QueryDict(saved.query))[0].build_query()


def format_count(filters: RunFilters, user: User) -> str:
    """Return how many runs a list shows; empty for none."""
    found = count_found_runs(
        build_run_queries(Run.objects.visible_to(user), filters, user=user)
    )
    return write_count(found)


def write_count(found: int) -> str:
    return f"{number(COUNT_LIMIT)}+" if found > COUNT_LIMIT else str(found or "")


def format_unsorted_count(filters: RunFilters, user: User) -> str:
    """Return how many runs an empty sorted list would show without its sort.

    They are not indexed yet, and those have a small index.
    """
    visible = Run.objects.visible_to(user)
    queries = build_run_queries(visible, filters.without("sort"), user=user)
    found = count_found_runs([one.filter(indexed=False) for one in queries])
    return write_count(found)


def list_version_options(filters: RunFilters, user: User) -> list[int]:
    """Return the versions of the agent, if runs of a single one are listed."""
    if len(filters.agent) != 1:
        return []
    agents = query_visible_agents(user).filter(pk=filters.agent[0])
    versions = AgentVersion.objects.filter(agent__in=agents)
    return list(versions.values_list("number", flat=True)[:MAX_OPTIONS])


def build_filter_panel(user: User) -> dict[str, Any]:
    """Return the options of the filters that are not facets."""
    return {
        "schedules": list_schedule_options(user),
        "since_choices": SINCE_LABELS.items(),
    }


def list_schedule_options(user: User) -> list[tuple[str, str]]:
    """Return number and name of visible schedules, with the owner of others' ones."""
    rows = Schedule.objects.visible_to(user).select_related("owner").defer("inputs")
    return [
        (str(one.pk), one.name if one.owner == user else f"{one.name} ({one.owner})")
        for one in rows[:MAX_OPTIONS]
    ]
