"""The times of a schedule as one of a few simple kinds, and as text."""

import re
from dataclasses import dataclass
from typing import Literal

from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

RecurrenceKind = Literal[
    "minutes", "hourly", "daily", "weekdays", "weekly", "monthly", "cron"
]

MINUTE_STEPS = (1, 2, 3, 5, 10, 15, 20, 30)
"""Divisors of an hour, so that all intervals are equally long."""
CRON_WEEKDAYS = {
    "1": WEEKDAYS[0],
    "2": WEEKDAYS[1],
    "3": WEEKDAYS[2],
    "4": WEEKDAYS[3],
    "5": WEEKDAYS[4],
    "6": WEEKDAYS[5],
    "0": WEEKDAYS[6],
}
"""Name of each day of the week, Monday first, in the active language."""
WEEKDAY_NUMBERS = {
    "MON": "1",
    "TUE": "2",
    "WED": "3",
    "THU": "4",
    "FRI": "5",
    "SAT": "6",
    "SUN": "0",
    "7": "0",
}
"""Other ways to write a day of the week in a cron expression."""
LAST_DAY_OF_MONTH = "L"
"""The last day of a month, instead of a number."""
DAYS_OF_MONTH = (*map(str, range(1, 29)), LAST_DAY_OF_MONTH)
"""Days that every month has."""

MINUTE_STEP_PATTERN = re.compile(r"\*/(\d{1,2})")
CLOCK_PATTERN = re.compile(r"(\d{1,2}) (\d{1,2})")


@dataclass(frozen=True)
class Recurrence:
    """When a schedule is due; `cron` is for times that no other kind can express."""

    kind: RecurrenceKind = "daily"
    every: int = 15
    """Minutes."""
    minute: int = 0
    """Of each hour."""
    at: str = "09:00"
    days: tuple[str, ...] = ("1",)
    """Days of the week as cron counts them."""
    day: str = "1"
    """Of the month."""
    cron: str = ""

    def to_cron(self) -> str:
        hour, minute = (int(part) for part in self.at.split(":"))
        match self.kind:
            case "minutes":
                return "* * * * *" if self.every == 1 else f"*/{self.every} * * * *"
            case "hourly":
                return f"{self.minute} * * * *"
            case "daily":
                return f"{minute} {hour} * * *"
            case "weekdays":
                return f"{minute} {hour} * * 1-5"
            case "weekly":
                return f"{minute} {hour} * * {','.join(sort_weekdays(self.days))}"
            case "monthly":
                return f"{minute} {hour} {self.day} * *"
        return self.cron

    def describe(self) -> str:
        """Describe the times in the active language; empty for the kind `cron`."""
        time = {"time": self.at}
        match self.kind:
            case "minutes":
                return ngettext(
                    "Every minute", "Every %(count)s minutes", self.every
                ) % {"count": self.every}
            case "hourly" if self.minute == 0:
                return _("Every hour, on the hour")
            case "hourly":
                return ngettext(
                    "Every hour, %(count)s minute past the hour",
                    "Every hour, %(count)s minutes past the hour",
                    self.minute,
                ) % {"count": self.minute}
            case "daily":
                return _("Every day at %(time)s") % time
            case "weekdays":
                return _("Monday to Friday at %(time)s") % time
            case "weekly":
                days = {"days": format_weekdays(self.days)}
                return _("Every %(days)s at %(time)s") % (days | time)
            case "monthly" if self.day == LAST_DAY_OF_MONTH:
                return _("On the last day of every month at %(time)s") % time
            case "monthly":
                day = {"day": self.day}
                return _("On day %(day)s of every month at %(time)s") % (day | time)
        return ""


def format_weekdays(days: tuple[str, ...]) -> str:
    """List days of the week by name: Monday, Thursday and Sunday."""
    *first, last = [str(CRON_WEEKDAYS[day]) for day in sort_weekdays(days)]
    if not first:
        return last
    listed = pgettext("between items of a list", ", ").join(first)
    return _("%(items)s and %(last)s") % {"items": listed, "last": last}


def parse_cron(cron: str) -> Recurrence:
    """Return the simplest recurrence that means `cron`."""
    minute, hour, day, month, weekday = cron.split()
    rest = (day, month, weekday)
    any_day = rest == ("*", "*", "*")
    if hour == "*" and any_day:
        if (step := MINUTE_STEP_PATTERN.fullmatch(minute)) and int(
            step[1]
        ) in MINUTE_STEPS:
            return Recurrence("minutes", every=int(step[1]))
        if minute == "*":
            return Recurrence("minutes", every=1)
        if minute.isdecimal():
            return Recurrence("hourly", minute=int(minute))
    if (clock := CLOCK_PATTERN.fullmatch(f"{minute} {hour}")) and month == "*":
        at = f"{int(clock[2]):02}:{int(clock[1]):02}"
        if any_day:
            return Recurrence("daily", at=at)
        if weekday == "*" and day in DAYS_OF_MONTH:
            return Recurrence("monthly", at=at, day=day)
        if day == "*" and weekday in ("1-5", "MON-FRI"):
            return Recurrence("weekdays", at=at)
        if day == "*" and (days := parse_weekdays(weekday)):
            return Recurrence("weekly", at=at, days=days)
    return Recurrence("cron", cron=cron)


def describe_cron(cron: str) -> str:
    """Describe when `cron` is due; the expression itself if no words fit it."""
    return parse_cron(cron).describe() or cron


def parse_weekdays(weekday: str) -> tuple[str, ...]:
    """Return single days of the week, Monday first; empty for ranges and steps."""
    days = [WEEKDAY_NUMBERS.get(part, part) for part in weekday.split(",")]
    return sort_weekdays(days) if all(day in CRON_WEEKDAYS for day in days) else ()


def sort_weekdays(days: "tuple[str, ...] | list[str]") -> tuple[str, ...]:
    """Return days of the week, Monday first, each once."""
    return tuple(number for number in CRON_WEEKDAYS if number in days)
