"""Times of a schedule as a choice of plain kinds, and in words."""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["minutes", "hourly", "daily", "weekdays", "weekly", "monthly", "cron"]

MINUTES = (1, 2, 3, 5, 10, 15, 20, 30)
"""Steps that divide an hour, so that all pauses are equally long."""
DAYS = (
    ("1", "Monday"),
    ("2", "Tuesday"),
    ("3", "Wednesday"),
    ("4", "Thursday"),
    ("5", "Friday"),
    ("6", "Saturday"),
    ("0", "Sunday"),
)
LAST = "L"
"""The last day of a month, in place of a number."""
DAYS_OF_MONTH = (*map(str, range(1, 29)), LAST)
"""Days that every month has."""

STEP = re.compile(r"\*/(\d{1,2})")
CLOCK = re.compile(r"(\d{1,2}) (\d{1,2})")


@dataclass(frozen=True)
class When:
    """When a schedule is due; `cron` is used for what the other kinds cannot say."""

    kind: Kind = "daily"
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

    def expression(self) -> str:
        """Return the five fields."""
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
                return f"{minute} {hour} * * {','.join(in_order(self.days))}"
            case "monthly":
                return f"{minute} {hour} {self.day} * *"
        return self.cron

    def words(self) -> str:
        """Say when it is due; empty where only the five fields can."""
        match self.kind:
            case "minutes" if self.every == 1:
                return "every minute"
            case "minutes":
                return f"every {self.every} minutes"
            case "hourly":
                past = f"{self.minute} minute{'' if self.minute == 1 else 's'} past"
                return f"every hour, {past if self.minute else 'on the hour'}"
            case "daily":
                return f"every day at {self.at}"
            case "weekdays":
                return f"on weekdays at {self.at}"
            case "weekly":
                names = [name for number, name in DAYS if number in self.days]
                *first, last = names
                listed = f"{', '.join(first)} and {last}" if first else last
                return f"every {listed} at {self.at}"
            case "monthly":
                day = "the last day" if self.day == LAST else f"day {self.day}"
                return f"on {day} of every month at {self.at}"
        return ""


def read_cron(cron: str) -> When:
    """Return the plainest choice that means `cron`."""
    minute, hour, day, month, weekday = cron.split()
    rest = (day, month, weekday)
    any_day = rest == ("*", "*", "*")
    if hour == "*" and any_day:
        if (step := STEP.fullmatch(minute)) and int(step[1]) in MINUTES:
            return When("minutes", every=int(step[1]))
        if minute == "*":
            return When("minutes", every=1)
        if minute.isdecimal():
            return When("hourly", minute=int(minute))
    if (clock := CLOCK.fullmatch(f"{minute} {hour}")) and month == "*":
        at = f"{int(clock[2]):02}:{int(clock[1]):02}"
        if any_day:
            return When("daily", at=at)
        if weekday == "*" and day in DAYS_OF_MONTH:
            return When("monthly", at=at, day=day)
        if day == "*" and weekday in ("1-5", "MON-FRI"):
            return When("weekdays", at=at)
        if day == "*" and (days := days_of(weekday)):
            return When("weekly", at=at, days=days)
    return When("cron", cron=cron)


def words_of(cron: str) -> str:
    """Say when `cron` is due: in words, or else the five fields as they are."""
    return read_cron(cron).words() or cron


def days_of(weekday: str) -> tuple[str, ...]:
    """Return single days of the week, Monday first; none where it says more."""
    names = {name[:3].upper(): number for number, name in DAYS} | {"7": "0"}
    found = [names.get(part, part) for part in weekday.split(",")]
    return in_order(found) if all(part in dict(DAYS) for part in found) else ()


def in_order(days: "tuple[str, ...] | list[str]") -> tuple[str, ...]:
    """Return days of the week, Monday first, each once."""
    return tuple(number for number, _ in DAYS if number in days)
