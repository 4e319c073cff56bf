"""The filters of the list of runs, as its URL has them."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from datetime import datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.models import Run
from runs.models.runs import UNFINISHED_STATUSES
from runs.whole_number import parse_whole_number

STATUS_GROUPS = {
    "unfinished": UNFINISHED_STATUSES,
    "needs": ["awaiting_approval", "awaiting_decision"],
}
"""Names that stand for several statuses in a URL."""
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
    "without": gettext_lazy("Without test runs"),
    "with": gettext_lazy("With test runs"),
    "only": gettext_lazy("Test runs only"),
}
"""The list leaves test runs and those of experiments out, unless it is asked."""
RATING_LABELS = {
    "": gettext_lazy("Rated or not"),
    "bad": gettext_lazy("Bad"),
    "good": gettext_lazy("Good"),
    "any": gettext_lazy("Rated"),
    "none": gettext_lazy("Not rated"),
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
MAX_VALUES = 50
"""Values of one filter; a page offers fewer."""


class FilterProblem(NamedTuple):
    name: str
    message: str


@dataclass(frozen=True)
class RunFilters:
    """The filters of a URL; of several values of one filter, any may match."""

    q: str = ""
    status: tuple[str, ...] = ()
    """Statuses, or the one name of `STATUS_GROUPS` that stands for them."""
    agent: tuple[int, ...] = ()
    version: int | None = None
    """The number of a version of the agent; 0 for its draft."""
    user: tuple[int, ...] = ()
    mine: bool = False
    children: bool = False
    """Include runs that other runs started."""
    model: tuple[str, ...] = ()
    tool: tuple[str, ...] = ()
    failed_tool: tuple[str, ...] = ()
    """Tools of which a call failed."""
    tag: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    error: tuple[str, ...] = ()
    """Error codes of failed runs."""
    schedule: str = ""
    """The number of one, or `any`."""
    since: str = ""
    begin: str = ""
    """Runs started on this day, `2026-11-21`, or at this time, `2026-11-21T14:05`."""
    end: str = ""
    """Runs started on this day or earlier, or before this time."""
    cost: str = ""
    """Minimum in dollars."""
    seconds: str = ""
    """Minimum in seconds."""
    tests: str = ""
    """A name of `TEST_LABELS`; by default only lists of what needs attention have them.
    """
    rating: str = ""
    """What a person thinks of the answer."""
    sort: str = ""

    def without(self, name: str) -> "RunFilters":
        values = {one.name: one.default for one in fields(self) if one.name == name}
        return replace(self, **values)  # type: ignore[arg-type]  # by name

    def build_query(self, **changes: object) -> str:
        """Return the query string with `changes`."""
        asked = replace(self, **changes) if changes else self  # type: ignore[arg-type]  # by name
        return f"?{urlencode(asked.to_query_params(), safe=',:')}"

    def to_query_params(self) -> list[tuple[str, str]]:
        """Return the parameters that are set, as short as they can be.

        Names and numbers share one parameter; texts can have commas in them.
        """
        found: list[tuple[str, str]] = []
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name in TEXT_LISTS:
                found += [(one.name, text) for text in value]
            elif isinstance(value, tuple):
                found += [(one.name, ",".join(map(str, value)))] if value else []
            elif value not in (None, "", False):
                found.append((one.name, "1" if value is True else str(value)))
        return found

    @property
    def names(self) -> set[str]:
        return {name for name, _value in self.to_query_params()}

    @property
    def statuses(self) -> list[str]:
        """Return the statuses that may match; none for all."""
        return expand_statuses(self.status)

    @property
    def needs_search_row(self) -> bool:
        """Whether only ended and indexed runs can match."""
        tools = self.tool or self.failed_tool
        return bool(tools or self.cost or self.seconds or self.sort)

    @property
    def includes_children(self) -> bool:
        """Whether sub-agent runs are shown: on request, of an agent, or to answer.

        Elsewhere they would outnumber the runs that people started.
        """
        return self.children or bool(self.agent) or self.status == ("needs",)

    @property
    def test_choice(self) -> str:
        """The name of `TEST_LABELS` that applies."""
        return self.tests or ("with" if self.status == ("needs",) else "without")

    @property
    def with_tests_url(self) -> str:
        """The same list with test runs."""
        return self.build_query(tests="with")

    @property
    def without_search_url(self) -> str:
        """The same list without the text that is searched for."""
        return self.build_query(q="")

    @property
    def without_sort_url(self) -> str:
        """The same list, the latest runs first."""
        return self.build_query(sort="")

    @property
    def is_filtered(self) -> bool:
        return bool(self.names - {"sort"})

    @property
    def is_far_back(self) -> bool:
        """Whether fewer runs are expected in the time than after it.

        They are gathered and then sorted: the newest first, all later ones would be
        read to find them.
        """
        begin, end = parse_time(self.begin), parse_end(self.end)
        if begin is None or end is None:
            return False
        return timezone.now() - end > end - begin

    @property
    def has_more(self) -> bool:
        """Whether a filter is set that is not in sight at first."""
        return bool(self.names & MORE_NAMES)


MORE_NAMES = {
    *("version", "children", "schedule", "begin", "end"),
    *("cost", "seconds"),
}
TEXT_LISTS = ("model", "tool", "failed_tool", "tag")


def expand_statuses(names: Iterable[str]) -> list[str]:
    """Return the statuses that names of statuses and groups stand for."""
    found = {one for name in names for one in STATUS_GROUPS.get(name, [name])}
    return [status for status in Run.Status.values if status in found]


def shorten_statuses(names: Iterable[str]) -> tuple[str, ...]:
    """Return known statuses, or the name of the group that they are."""
    statuses = expand_statuses(names)
    for group, members in STATUS_GROUPS.items():
        if set(statuses) == set(members):
            return (group,)
    return tuple(statuses)


def read_filters(query: QueryDict) -> tuple[RunFilters, list[FilterProblem]]:
    """Parse the filters of a URL; invalid ones are reported and left out."""
    problems: list[FilterProblem] = []

    def text(name: str, longest: int = 200) -> str:
        return query.get(name, "").strip().replace("\0", "")[:longest]

    def among(name: str, known: dict[str, Any]) -> str:
        return value if (value := text(name)) in known else ""

    def texts(name: str, longest: int = 200) -> tuple[str, ...]:
        found = (one.strip().replace("\0", "") for one in query.getlist(name))
        return unique_values(one[:longest] for one in found if one)

    def parts(name: str) -> list[str]:
        return [one for value in query.getlist(name) for one in value.split(",")]

    def numbers(name: str) -> tuple[int, ...]:
        found = (parse_whole_number(one) for one in parts(name))
        return unique_values(one for one in found if one is not None)

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
        status=shorten_statuses(parts("status")),
        agent=numbers("agent"),
        version=parse_whole_number(query.get("version", "")),
        user=numbers("user"),
        mine=query.get("mine") == "1",
        children=query.get("children") == "1",
        model=texts("model"),
        tool=texts("tool"),
        failed_tool=texts("failed_tool"),
        tag=texts("tag", 40),
        source=unique_values(
            one for one in parts("source") if one in Run.Source.values
        ),
        error=unique_values(one for one in parts("error") if is_error_code(one)),
        schedule=parse_schedule(text("schedule", 20)),
        since=among("since", SINCE_LABELS),
        begin=checked("begin", parse_time, day_error),
        end=checked("end", parse_time, day_error),
        cost=checked("cost", parse_amount, cost_error),
        seconds=checked("seconds", parse_amount, seconds_error),
        tests=among("tests", TEST_LABELS),
        rating=among("rating", RATING_LABELS),
        sort=among("sort", SORT_LABELS),
    )
    if found.tests == replace(found, tests="").test_choice:
        found = replace(found, tests="")
    return found, problems


def unique_values(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return the first values, each once."""
    return tuple(dict.fromkeys(values))[:MAX_VALUES]


def is_error_code(text: str) -> bool:
    return 0 < len(text) <= 40 and text.isascii() and text.isidentifier()


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


def parse_time(text: str) -> datetime | None:
    """Return a time, or the beginning of a day; None if invalid."""
    try:
        found = parse_datetime(text) if "T" in text else None
        day = None if found else parse_date(text)
    except ValueError:
        return None
    if day is not None:
        found = datetime.combine(day, time.min)
    if found is None or not 1 < found.year < 9999:  # a day more, or a zone, must fit
        return None
    return (
        found if found.tzinfo else found.replace(tzinfo=timezone.get_current_timezone())
    )


def parse_end(text: str) -> datetime | None:
    """Return the time before which runs started: the end of a day, or a time."""
    found = parse_time(text)
    return found + timedelta(days=1) if found and "T" not in text else found
