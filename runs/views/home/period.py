"""The period of the figures, as the URL of the home page has it."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.services.search.slot_figures import ChartUnit, SlotRange
from runs.services.search.slot_stats import get_run_slot
from runs.ui.format import format_day, format_weekday

RANGE_LABELS = {
    "24h": gettext_lazy("24 h"),
    "7d": gettext_lazy("7 days"),
    "30d": gettext_lazy("30 days"),
}
RANGE_DAYS = {"7d": 7, "30d": 30}
DEFAULT_RANGE = "7d"
HOURS = 24
MAX_DAYS = 92
"""Days of a period that a person entered."""


@dataclass(frozen=True)
class HomePeriod:
    """Consecutive hours or days in the viewer's time zone, the last one until now."""

    name: str
    """A key of `RANGE_LABELS`; empty for two dates."""
    unit: ChartUnit
    marks: tuple[datetime, ...]
    """Where each hour or day begins."""
    end: datetime | None
    """Where the last one ends; None if that is still to come."""
    counts_tests: bool = True
    """Whether test runs and runs of experiments count as runs."""
    mine: bool = False
    """Whether an administrator sees only their own runs."""

    @property
    def begin(self) -> datetime:
        return self.marks[0]

    @property
    def query(self) -> str:
        """Return its part of the address of the home page."""
        if self.name:
            return f"range={self.name}"
        return f"begin={self.begin.date()}&end={self.last_day}"

    @property
    def last_day(self) -> date:
        return self.marks[-1].date()

    @property
    def label(self) -> str:
        days = {"begin": self.begin.date(), "end": self.last_day}
        if days["begin"] == days["end"]:
            return format_day(days["begin"])
        return _("%(begin)s to %(end)s") % {
            name: format_day(day) for name, day in days.items()
        }

    def slots(self, owner: int) -> SlotRange:
        return SlotRange(owner, self.begin, self.end, self.counts_tests)

    def previous_slots(self, owner: int) -> SlotRange:
        """Return as much time before, until the same time of the day."""
        end = self.end or get_run_slot(timezone.now())
        if self.unit == "hour":
            length = timedelta(hours=HOURS)
            begin, end = self.begin - length, end - length
            return SlotRange(owner, begin, end, self.counts_tests)
        days = timedelta(days=len(self.marks))
        zone = self.begin.tzinfo
        # a day of the calendar may have 23 or 25 hours
        end = (end.astimezone(zone) - days).astimezone(UTC)
        return SlotRange(owner, self.begin - days, end, self.counts_tests)

    def place_of(self, at: datetime) -> int | None:
        """Return which hour or day a moment is in; None outside."""
        if at < self.begin or (self.end is not None and at >= self.end):
            return None
        return sum(mark <= at for mark in self.marks) - 1

    def to_list_query(self, **filters: str) -> str:
        """Return the query of the list of runs for the whole period."""
        if self.unit == "hour":
            return self._build_query(begin=_format_minute(self.begin), **filters)
        end = "" if self.end is None else self.last_day.isoformat()
        begin = self.begin.date().isoformat()
        return self._build_query(begin=begin, end=end, **filters)

    def to_bar_query(self, place: int, **filters: str) -> str:
        """Return the query of the list of runs for one hour or day."""
        mark = self.marks[place]
        if self.unit == "day":
            day = mark.date().isoformat()
            return self._build_query(begin=day, end=day, **filters)
        end = _format_minute(_add_hour(mark))
        return self._build_query(begin=_format_minute(mark), end=end, **filters)

    def _build_query(self, **filters: str) -> str:
        chosen = {
            "mine": "1" if self.mine else "",
            "tests": "with" if self.counts_tests else "",
            **filters,
        }
        set_ones = {name: value for name, value in chosen.items() if value}
        return f"?{urlencode(set_ones, safe=',:')}"

    def describe_before(self, value: str) -> str:
        match self.name:
            case "24h":
                text = _("%(value)s the day before")
            case "7d":
                text = _("%(value)s the week before")
            case _name:
                text = _("%(value)s the period before")
        return text % {"value": value}

    def describe_mark(self, place: int) -> str:
        """Name an hour or day below the chart and in its texts."""
        mark = self.marks[place]
        if self.unit == "hour":
            return f"{mark:%H:%M}"
        if len(self.marks) > RANGE_DAYS["7d"]:
            return format_day(mark.date())
        return format_weekday(mark.date())


def read_period(query: QueryDict, *, default: str = DEFAULT_RANGE) -> HomePeriod:
    """Return the period of a URL: two dates in any order, a name, or else `default`."""
    begin, end = _parse_day(query.get("begin")), _parse_day(query.get("end"))
    if begin and end and begin > end:
        begin, end = end, begin
    today = timezone.localdate()
    if begin and begin <= today:
        last = min(end, today) if end else today
        begin = max(begin, last - timedelta(days=MAX_DAYS - 1))
        return _build_days("", begin, last)
    name = query.get("range", "")
    if name == "24h":
        return _build_hours()
    name = name if name in RANGE_DAYS else default
    return _build_days(name, today - timedelta(days=RANGE_DAYS[name] - 1), today)


def _build_days(name: str, first: date, last: date) -> HomePeriod:
    zone = timezone.get_current_timezone()
    days = [first + timedelta(days=n) for n in range((last - first).days + 2)]
    *marks, end = (datetime.combine(day, time.min, zone) for day in days)
    is_past = last < timezone.localdate()
    return HomePeriod(name, "day", tuple(marks), end if is_past else None)


def _build_hours() -> HomePeriod:
    zone = timezone.get_current_timezone()
    now = timezone.localtime().replace(minute=0, second=0, microsecond=0)
    hours = [now.astimezone(UTC) - timedelta(hours=n) for n in range(HOURS)]
    marks = tuple(hour.astimezone(zone) for hour in reversed(hours))
    return HomePeriod("24h", "hour", marks, None)


def _add_hour(at: datetime) -> datetime:
    return (at.astimezone(UTC) + timedelta(hours=1)).astimezone(at.tzinfo)


def _parse_day(text: str | None) -> date | None:
    try:
        found = parse_date(text or "")
    except ValueError:
        return None
    return found if found and 1 < found.year < 9999 else None


def _format_minute(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M}"
