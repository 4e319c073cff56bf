"""The filters of the list of runs, and the runs that match them."""

from dataclasses import dataclass, fields, replace
from datetime import datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.models import Agent, AgentStep, Run, Spec
from runs.models.runs import UNFINISHED_STATUSES
from runs.whole_number import parse_whole_number

STATUS_GROUPS = {
    "": (gettext_lazy("All runs"), None),
    "unfinished": (gettext_lazy("Unfinished"), UNFINISHED_STATUSES),
    "needs": (
        gettext_lazy("Needs attention"),
        ["awaiting_approval", "awaiting_decision"],
    ),
    "succeeded": (gettext_lazy("Succeeded"), ["succeeded"]),
    "limit_reached": (gettext_lazy("Limit reached"), ["limit_reached"]),
    "failed": (gettext_lazy("Failed"), ["failed"]),
    "canceled": (gettext_lazy("Canceled"), ["canceled"]),
}
SINCE_LABELS = {
    "": gettext_lazy("Any time"),
    "1h": gettext_lazy("Last hour"),
    "1d": gettext_lazy("Last 24 hours"),
    "7d": gettext_lazy("Last 7 days"),
    "30d": gettext_lazy("Last 30 days"),
}
SINCE_PERIODS = {
    "1h": timedelta(hours=1),
    "1d": timedelta(days=1),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
TEST_LABELS = {
    "": gettext_lazy("With test runs"),
    "without": gettext_lazy("Without test runs"),
    "only": gettext_lazy("Test runs only"),
}
ANY_SCHEDULE = "any"
"""Stands in place of the number of a schedule."""
SORT_LABELS = {
    "": gettext_lazy("Started"),
    "seconds": gettext_lazy("Time"),
    "rounds": gettext_lazy("Rounds"),
    "tokens": gettext_lazy("Tokens"),
    "cost": gettext_lazy("Cost"),
}
"""Columns of the search row that the list can be sorted by, largest first."""


class FilterProblem(NamedTuple):
    """An invalid filter, and why."""

    name: str
    message: str


@dataclass(frozen=True)
class RunFilters:
    """The filters of a URL."""

    q: str = ""
    status: str = ""
    agent: int | None = None
    version: int | None = None
    """The number of a version of the agent; 0 for its draft."""
    user: int | None = None
    mine: bool = False
    children: bool = False
    """Include runs that other runs started."""
    model: str = ""
    tool: str = ""
    tag: str = ""
    schedule: str = ""
    """The number of one, or `any`."""
    since: str = ""
    begin: str = ""
    """Runs started on this day, `2026-11-21`, or later."""
    end: str = ""
    """Runs started on this day or earlier."""
    cost: str = ""
    """Minimum in dollars."""
    seconds: str = ""
    """Minimum in seconds."""
    tests: str = ""
    sort: str = ""

    def build_query(self, **changes: object) -> str:
        """Return the query string with `changes`."""
        asked = replace(self, **changes) if changes else self  # type: ignore[arg-type]  # by name
        return f"?{urlencode(asked.to_query_params())}"

    def to_query_params(self) -> dict[str, str]:
        """Return the parameters that are set."""
        found: dict[str, str] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if value not in (None, "", False):
                found[one.name] = "1" if value is True else str(value)
        return found

    @property
    def needs_search_row(self) -> bool:
        """Whether only ended and indexed runs can match."""
        return bool(self.tool or self.cost or self.seconds or self.sort)

    @property
    def includes_children(self) -> bool:
        """Whether sub-agent runs are shown: on request, of one agent, or to answer.

        Elsewhere they would outnumber the runs that people started.
        """
        return self.children or self.agent is not None or self.status == "needs"

    @property
    def is_filtered(self) -> bool:
        """Whether anything is filtered."""
        return bool(self.to_query_params().keys() - {"sort"})

    @property
    def extra_filter_count(self) -> int:
        """Return how many filters of "More filters" are set."""
        usual = {"q", "status", "agent", "mine", "since", "sort"}
        return len(self.to_query_params().keys() - usual)


def read_filters(query: QueryDict) -> tuple[RunFilters, list[FilterProblem]]:
    """Parse the filters of a URL; invalid ones are reported and left out."""
    problems: list[FilterProblem] = []

    def text(name: str, longest: int = 200) -> str:
        return query.get(name, "").strip().replace("\0", "")[:longest]

    def among(name: str, known: dict[str, Any]) -> str:
        return value if (value := text(name)) in known else ""

    def checked(name: str, parse: Any, sentence: str) -> str:
        value = text(name, 40)
        if not value or parse(value) is not None:
            return value
        problems.append(FilterProblem(name, sentence % {"value": value}))
        return ""

    day_error = _("%(value)s is not a date. Enter a date like 2026-11-21.")
    cost_error = _("%(value)s is not an amount. Enter dollars, like 0.10.")
    seconds_error = _("%(value)s is not a number. Enter seconds, like 30.")
    found = RunFilters(
        q=text("q"),
        status=among("status", STATUS_GROUPS),
        agent=parse_whole_number(query.get("agent", "")),
        version=parse_whole_number(query.get("version", "")),
        user=parse_whole_number(query.get("user", "")),
        mine=query.get("mine") == "1",
        children=query.get("children") == "1",
        model=text("model"),
        tool=text("tool"),
        tag=text("tag", 40),
        schedule=parse_schedule(text("schedule", 20)),
        since=among("since", SINCE_LABELS),
        begin=checked("begin", parse_day, day_error),
        end=checked("end", parse_day, day_error),
        cost=checked("cost", parse_amount, cost_error),
        seconds=checked("seconds", parse_amount, seconds_error),
        tests=among("tests", TEST_LABELS),
        sort=among("sort", SORT_LABELS),
    )
    return found, problems


def parse_schedule(text: str) -> str:
    """Return the number of a schedule, `any`, or nothing if invalid."""
    return text if text == ANY_SCHEDULE or parse_whole_number(text) is not None else ""


def parse_amount(text: str) -> Decimal | None:
    """Return an amount of at most eight digits before the point; None if invalid."""
    try:
        found = round(Decimal(text), 6)  # as costs are kept
    except InvalidOperation:
        return None
    return found if found.is_finite() and 0 <= found < 10**8 else None


def parse_day(text: str) -> datetime | None:
    """Return the beginning of a day; None if invalid."""
    try:
        found = parse_date(text)
    except ValueError:
        return None
    if found is None or not 1 < found.year < 9999:  # a day more, or a zone, must fit
        return None
    return datetime.combine(found, time.min, timezone.get_current_timezone())


def apply_run_filters(
    runs: QuerySet[Run], filters: RunFilters, *, user: User
) -> QuerySet[Run]:
    """Return the runs that match all filters except the search."""
    _label, statuses = STATUS_GROUPS[filters.status]
    if statuses is not None:
        runs = runs.filter(status__in=statuses)
    if filters.agent is not None:
        runs = runs.filter(agent=filters.agent)
        if filters.version is not None:
            is_draft = filters.version == 0
            number = Q(version=None) if is_draft else Q(version__number=filters.version)
            runs = runs.filter(number)
    if filters.mine:
        runs = runs.filter(owner=user)
    if filters.user is not None:
        runs = runs.filter(owner=filters.user)
    if filters.model:
        specs = Spec.objects.filter(body__model__model=filters.model)
        runs = runs.filter(spec__in=list(specs.values_list("pk", flat=True)))
    if filters.tag:
        runs = runs.filter(tags__name=filters.tag)
    if filters.tests:
        runs = runs.filter(is_test=filters.tests == "only")
    return _filter_by_search_row(
        _filter_by_time(_filter_by_schedule(runs, filters), filters), filters
    )


def _filter_by_schedule(runs: QuerySet[Run], filters: RunFilters) -> QuerySet[Run]:
    if filters.schedule == ANY_SCHEDULE:
        return runs.filter(schedule__isnull=False)
    number = parse_whole_number(filters.schedule)
    return runs if number is None else runs.filter(schedule=number)


def _filter_by_time(runs: QuerySet[Run], filters: RunFilters) -> QuerySet[Run]:
    if filters.since:
        runs = runs.filter(
            created_at__gte=timezone.now() - SINCE_PERIODS[filters.since]
        )
    if filters.begin and (first := parse_day(filters.begin)) is not None:
        runs = runs.filter(created_at__gte=first)
    if filters.end and (last := parse_day(filters.end)) is not None:
        runs = runs.filter(created_at__lt=last + timedelta(days=1))
    return runs


def _filter_by_search_row(runs: QuerySet[Run], filters: RunFilters) -> QuerySet[Run]:
    if filters.tool:
        runs = runs.filter(called_tools__tool=filters.tool)
    if filters.cost:
        runs = runs.filter(search_row__cost__gte=parse_amount(filters.cost))
    if filters.seconds:
        runs = runs.filter(search_row__seconds__gte=float(filters.seconds))
    return runs


def build_search_conditions(filters: RunFilters) -> list[Q]:
    """Return the conditions of the search, each for a query of its own.

    Ended runs are found by their search row, others by title, tool or number.
    """
    shown = Q() if filters.includes_children else Q(parent_step=None)
    if not filters.q:
        return [shown]
    by_search_row = shown & Q(
        indexed=True, search_row__text__contains=filters.q.lower()
    )
    if filters.needs_search_row:
        return [by_search_row]
    called = AgentStep.objects.filter(run=OuterRef("pk"), tool__icontains=filters.q)
    others = Q(title__icontains=filters.q) | Q(Exists(called))
    found = [by_search_row, shown & Q(indexed=False) & others]
    number = parse_whole_number(filters.q)
    return found if number is None else [*found, Q(pk=number)]


def query_visible_agents(user: User) -> QuerySet[Agent]:
    """Return the agents whose runs are visible to the user."""
    return Agent.objects.visible_to(user).order_by("name")
