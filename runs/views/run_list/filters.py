"""What the address of the list of runs asks for, and the runs that pass."""

from dataclasses import dataclass, fields, replace
from datetime import datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_date

from runs.models import Agent, Run, Spec
from runs.models.runs import UNFINISHED
from runs.whole_number import whole_number

GROUPS = {
    "": ("All runs", None),
    "unfinished": ("Unfinished", UNFINISHED),
    "needs": ("Needs me", ["awaiting_approval", "awaiting_decision"]),
    "succeeded": ("Succeeded", ["succeeded"]),
    "stopped": ("Stopped", ["stopped"]),
    "failed": ("Failed", ["failed"]),
    "cancelled": ("Cancelled", ["cancelled"]),
}
SINCE = {
    "": "any time",
    "1h": "last hour",
    "1d": "last 24 hours",
    "7d": "last 7 days",
    "30d": "last 30 days",
}
SPANS = {
    "1h": timedelta(hours=1),
    "1d": timedelta(days=1),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
TESTS = {"": "with tests", "without": "without tests", "only": "tests only"}
ANY = "any"
"""In the place of a schedule's number."""
SORTS = {
    "": "Started",
    "seconds": "Time",
    "rounds": "Rounds",
    "tokens": "Tokens",
    "cost": "Cost",
}
"""The columns of the card that a list can be sorted by, largest first."""


class Problem(NamedTuple):
    """A filter that makes no sense, and why."""

    name: str
    sentence: str


@dataclass(frozen=True)
class Filters:
    """What the address asks for."""

    q: str = ""
    status: str = ""
    agent: int | None = None
    version: int | None = None
    """The number of a version of the agent; 0 for its draft."""
    user: int | None = None
    mine: bool = False
    children: bool = False
    """Runs that other runs have started are shown too."""
    model: str = ""
    tool: str = ""
    tag: str = ""
    schedule: str = ""
    """The number of one, or `any`."""
    since: str = ""
    begin: str = ""
    """A day, `2026-11-21`: runs started on it or later."""
    end: str = ""
    """A day: runs started on it or earlier."""
    cost: str = ""
    """Dollars at least."""
    seconds: str = ""
    """Seconds at least."""
    tests: str = ""
    sort: str = ""

    def address(self, **changes: object) -> str:
        """Return the query string with some of it changed."""
        asked = replace(self, **changes) if changes else self  # type: ignore[arg-type]  # by name
        return f"?{urlencode(asked.words())}"

    def words(self) -> dict[str, str]:
        """Return the parameters that are set."""
        found: dict[str, str] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if value not in (None, "", False):
                found[one.name] = "1" if value is True else str(value)
        return found

    @property
    def needs_card(self) -> bool:
        """Whether only runs that are over, and filed, can pass."""
        return bool(self.tool or self.cost or self.seconds or self.sort)

    @property
    def with_children(self) -> bool:
        """Whether children are shown: asked for, of one agent, or in need of a person.

        Elsewhere they would crowd out the questions that people asked.
        """
        return self.children or self.agent is not None or self.status == "needs"

    @property
    def any(self) -> bool:
        """Whether anything is filtered."""
        return bool(self.words().keys() - {"sort"})

    @property
    def more(self) -> int:
        """Return how many of the less usual filters are set."""
        usual = {"q", "status", "agent", "mine", "since", "sort"}
        return len(self.words().keys() - usual)


def read_filters(query: QueryDict) -> tuple[Filters, list[Problem]]:
    """Take the filters from the address; what makes no sense is named and left out."""
    problems: list[Problem] = []

    def text(name: str, longest: int = 200) -> str:
        return query.get(name, "").strip().replace("\0", "")[:longest]

    def among(name: str, known: dict[str, Any]) -> str:
        return value if (value := text(name)) in known else ""

    def checked(name: str, parse: Any, sentence: str) -> str:
        value = text(name, 40)
        if not value or parse(value) is not None:
            return value
        problems.append(Problem(name, sentence.format(value)))
        return ""

    found = Filters(
        q=text("q"),
        status=among("status", GROUPS),
        agent=whole_number(query.get("agent", "")),
        version=whole_number(query.get("version", "")),
        user=whole_number(query.get("user", "")),
        mine=query.get("mine") == "1",
        children=query.get("children") == "1",
        model=text("model"),
        tool=text("tool"),
        tag=text("tag", 40),
        schedule=schedule_in(text("schedule", 20)),
        since=among("since", SINCE),
        begin=checked("begin", day, "{!r} is no day. Write it like 2026-11-21."),
        end=checked("end", day, "{!r} is no day. Write it like 2026-11-21."),
        cost=checked("cost", amount, "{!r} is no cost in dollars, like 0.10."),
        seconds=checked("seconds", amount, "{!r} is no number of seconds, like 30."),
        tests=among("tests", TESTS),
        sort=among("sort", SORTS),
    )
    return found, problems


def schedule_in(text: str) -> str:
    """Return which schedule is meant; empty for what is none."""
    return text if text == ANY or whole_number(text) is not None else ""


def amount(text: str) -> Decimal | None:
    """Return an amount of at most eight digits before the point; None for none."""
    try:
        found = round(Decimal(text), 6)  # as costs are kept
    except InvalidOperation:
        return None
    return found if found.is_finite() and 0 <= found < 10**8 else None


def day(text: str) -> datetime | None:
    """Return the beginning of a day; None for what is none."""
    try:
        found = parse_date(text)
    except ValueError:
        return None
    if found is None or not 1 < found.year < 9999:  # a day more, or a zone, must fit
        return None
    return datetime.combine(found, time.min, timezone.get_current_timezone())


def passing(runs: QuerySet[Run], filters: Filters, *, user: User) -> QuerySet[Run]:
    """Return the runs that pass all filters but the words that are searched."""
    _, statuses = GROUPS[filters.status]
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
    return _by_card(_by_time(_by_schedule(runs, filters), filters), filters)


def _by_schedule(runs: QuerySet[Run], filters: Filters) -> QuerySet[Run]:
    if filters.schedule == ANY:
        return runs.filter(schedule__isnull=False)
    number = whole_number(filters.schedule)
    return runs if number is None else runs.filter(schedule=number)


def _by_time(runs: QuerySet[Run], filters: Filters) -> QuerySet[Run]:
    if filters.since:
        runs = runs.filter(created_at__gte=timezone.now() - SPANS[filters.since])
    if filters.begin and (first := day(filters.begin)) is not None:
        runs = runs.filter(created_at__gte=first)
    if filters.end and (last := day(filters.end)) is not None:
        runs = runs.filter(created_at__lt=last + timedelta(days=1))
    return runs


def _by_card(runs: QuerySet[Run], filters: Filters) -> QuerySet[Run]:
    if filters.tool:
        runs = runs.filter(called__tool=filters.tool)
    if filters.cost:
        runs = runs.filter(card__cost__gte=amount(filters.cost))
    if filters.seconds:
        runs = runs.filter(card__seconds__gte=float(filters.seconds))
    return runs


def said_in(filters: Filters) -> list[Q]:
    """Return what matches the searched words, each a query of its own.

    A run that is over is found by its card, any other by its title or number.
    """
    shown = Q() if filters.with_children else Q(parent_step=None)
    if not filters.q:
        return [shown]
    by_card = shown & Q(filed=True, card__text__contains=filters.q.lower())
    if filters.needs_card:
        return [by_card]
    found = [by_card, shown & Q(filed=False, title__icontains=filters.q)]
    number = whole_number(filters.q)
    return found if number is None else [*found, Q(pk=number)]


def agents_of(user: User) -> QuerySet[Agent]:
    """Return the agents whose runs one may see."""
    return Agent.objects.visible_to(user).order_by("name")
