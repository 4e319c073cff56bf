"""The list of runs in the API: the filters and sorts of its page."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from pydantic import AfterValidator, Field

from runs.api.dispatch import json_response
from runs.api.queries import Id, Page, PageQuery, invalid_cursor
from runs.api.route import Route
from runs.api.shapes import RunListShape, RunStatus
from runs.models import Agent, Run
from runs.serializers import RUN_RELATIONS, Json, run_json
from runs.views.run_list.filters import (
    RunFilters,
    parse_amount,
    parse_time,
    shorten_statuses,
)
from runs.views.run_list.pagination import (
    build_run_queries,
    fetch_runs_after,
    load_page_runs,
    merge_run_lists,
    parse_page_cursor,
)

Text = Annotated[str, Field(max_length=200)]


def check_with(parse: Callable[[str], Any], message: str) -> AfterValidator:
    def check(value: str) -> str:
        if value and parse(value) is None:
            raise ValueError(message)
        return value

    return AfterValidator(check)


Moment = Annotated[
    str,
    Field(max_length=40),
    check_with(parse_time, "Enter a date like 2026-11-21 or a time in ISO 8601"),
]
Amount = Annotated[
    str, Field(max_length=40), check_with(parse_amount, "Enter a number like 0.10")
]


class RunListQuery(PageQuery):
    """Which runs; of several values of one filter, any may match."""

    q: Text = ""
    """Words in inputs, output, tools and title."""
    status: list[RunStatus | Literal["unfinished", "needs"]] = []
    """`needs`: awaiting an approval or a decision."""
    agent: Annotated[list[Text], Field(max_length=50)] = []
    """Slugs."""
    version: Id | None = None
    """Number of a version, with `agent`; 0 for its draft."""
    user: Annotated[list[Id], Field(max_length=50)] = []
    mine: bool = False
    children: bool = False
    """Include runs that other runs started."""
    model: Annotated[list[Text], Field(max_length=50)] = []
    tool: Annotated[list[Text], Field(max_length=50)] = []
    tag: Annotated[list[Text], Field(max_length=50)] = []
    source: list[Literal["page", "api", "schedule", "parent", "eval"]] = []
    error: Annotated[
        list[Annotated[str, Field(pattern="^[a-z_0-9]{1,40}$")]], Field(max_length=50)
    ] = []
    """Codes of errors."""
    schedule: Id | Literal["any", ""] = ""
    since: Literal["", "1h", "1d", "7d", "30d"] = ""
    begin: Moment = ""
    """Started on this day or later."""
    end: Moment = ""
    """Started on this day or earlier, or before this time."""
    cost: Amount = ""
    """At least this, in the currency of your prices."""
    seconds: Amount = ""
    """At least this."""
    tests: Literal["", "without", "only"] = ""
    rating: Literal["", "bad", "good", "any", "none"] = ""
    """What a person thinks of the answer; `any` for all that are rated, or `none`."""
    sort: Literal["", "seconds", "rounds", "tokens", "cost"] = ""
    """The largest first; by default the newest. Only ended runs have numbers."""

    def build_filters(self) -> RunFilters:
        slugs = [slug.replace("\0", "") for slug in self.agent]
        agents = Agent.objects.filter(slug__in=slugs).values_list("pk", flat=True)
        return RunFilters(
            q=self.q.strip(),
            status=shorten_statuses(self.status),
            agent=tuple(agents) or ((0,) if slugs else ()),
            version=self.version,
            user=tuple(self.user),
            mine=self.mine,
            children=self.children,
            model=tuple(self.model),
            tool=tuple(self.tool),
            tag=tuple(self.tag),
            source=tuple(self.source),
            error=tuple(self.error),
            schedule=str(self.schedule),
            since=self.since,
            begin=self.begin,
            end=self.end,
            cost=self.cost,
            seconds=self.seconds,
            tests=self.tests or "with",
            rating=self.rating,
            sort=self.sort,
        )


def list_runs(request: HttpRequest, user: User, query: RunListQuery) -> HttpResponse:
    """The runs that you may see, the newest first, without their steps."""
    filters = query.build_filters()
    place = parse_page_cursor(query.cursor, filters.sort) if query.cursor else None
    if query.cursor and place is None:
        raise invalid_cursor()
    visible = Run.objects.visible_to(user)
    found = merge_run_lists(
        [
            fetch_runs_after(
                one, place, filters.sort, most=query.limit, gather=filters.is_far_back
            )
            for one in build_run_queries(visible, filters, user=user)
        ],
        sign=-1,
    )
    rows = visible.select_related(*RUN_RELATIONS, "owner").prefetch_related("tags")
    page = found[: query.limit]
    return json_response(
        {
            "data": [listed_run_json(run) for run in load_page_runs(rows, page)],
            "next": str(page[-1]) if len(found) > query.limit else None,
        }
    )


def listed_run_json(run: Run) -> Json:
    """Return a run with its owner, title and what people think of it."""
    return {
        **run_json(run),
        "owner": run.owner.get_username(),
        "title": run.title,
        "source": run.source,
        "is_test": run.is_test,
        "rating": run.rating,
        "tags": [tag.name for tag in run.tags.all()],
    }


ROUTES = [
    Route("GET", "runs", list_runs, "List runs", Page[RunListShape], query=RunListQuery)
]
