"""Numbers of the last seven days, ready to be drawn as SVG by a template."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from django.db.models import QuerySet, Sum

from runs.models import RunTally

DAYS = 7
STEP = 100 / DAYS
"""Percent of the axis, from bar to bar."""
WIDTH = 10.0
"""Of a bar; its templates say the same."""
LEFT = (STEP - WIDTH) / 2
"""Where the first bar begins."""
TOP, BASE = 8.5, 112.5


class Bar(NamedTuple):
    """One piece of a stacked bar."""

    look: str
    x: str
    y: str
    height: str
    words: str


class Label(NamedTuple):
    """A word at an axis."""

    at: str
    word: str
    anchor: str = "middle"
    """Which end of the word stands there: start, middle or end."""


class Chart(NamedTuple):
    """What the template draws."""

    bars: list[Bar]
    days: list[Label]
    ticks: list[Label]
    lines: dict[str, str]
    """Points of each line by its look."""


class Outcomes(NamedTuple):
    """Runs by outcome."""

    chart: Chart
    total: int
    succeeded: int
    failed: int
    stopped: int


class Spending(NamedTuple):
    """What runs cost, or the tokens they used."""

    key: str
    """Its name in the tallies."""
    chart: Chart
    total: float
    is_alone: bool
    """Whether these are tokens that no price makes dollars."""


def week() -> list[date]:
    """Return the days of the charts, the oldest first."""
    today = datetime.now(UTC).date()
    return [today - timedelta(days=n) for n in range(DAYS - 1, -1, -1)]


def outcomes_of(tallies: QuerySet[RunTally]) -> Outcomes | None:
    """Count the runs that ended, by day and outcome; None where there are none."""
    days = week()
    counted = tallies.filter(day__gte=days[0]).values_list("day", "status")
    table: dict[tuple[date, str], int] = defaultdict(int)
    for day, status, number in counted.annotate(number=Sum("runs")):
        table[day, "succeeded" if status == "cancelled" else status] += number
    if not any(table.values()):
        return None
    highest = max(sum(n for (d, _), n in table.items() if d == day) for day in days)
    top = round_up(highest)
    bars = [bar for n, day in enumerate(days) for bar in stack(table, day, n, top)]
    sums = {s: sum(n for (_, t), n in table.items() if t == s) for _, s in STACK}
    return Outcomes(
        Chart(bars, day_labels(days), count_ticks(top), {}),
        total=sum(sums.values()),
        **sums,
    )


def spending_of(tallies: QuerySet[RunTally]) -> list[Spending]:
    """Add up what runs cost and used, by day; nothing where that is nothing."""
    recent = tallies.filter(day__gte=week()[0])
    sums = list(recent.values_list("day").annotate(Sum("cost"), Sum("tokens")))
    cost = {day: float(spent) for day, spent, _ in sums if spent}
    tokens = {day: float(used) for day, _, used in sums if used}
    return [
        Spending(key, amounts_a_day(by_day, key), sum(by_day.values()), not cost)
        for key, by_day in (("cost", cost), ("tokens", tokens))
        if by_day
    ]


def amounts_a_day(by_day: dict[date, float], key: str) -> Chart:
    """Return a bar for each day with an amount."""
    unit = 0.01 if key == "cost" else 1.0
    days, top = week(), round_up(max(by_day.values()), unit=unit)
    bars = [
        _bar(n, by_day[day], top, f"{day:%d %b}: {_amount(by_day[day], key)}")
        for n, day in enumerate(days)
        if day in by_day
    ]
    ticks = [
        Label(f"{BASE - (BASE - TOP) * part:.1f}", _amount(top * part, key))
        for part in (0, 0.5, 1)
    ]
    return Chart(bars, day_labels(days), ticks, {})


def _bar(place: int, value: float, top: float, words: str) -> Bar:
    height = max(1.5, (BASE - TOP) * value / top)
    y = BASE - 0.5 - height
    return Bar("c-stop", bar_at(place), f"{y:.1f}", f"{height:.1f}", words)


def bar_at(place: int) -> str:
    """Return where the bar of a day begins, in percent of the axis."""
    return f"{LEFT + STEP * place:.2f}"


def _amount(value: float, key: str) -> str:
    """Return a short number: `$0.25`, `1.2 M`, `40 k`."""
    if key == "cost":
        return f"${value:.2f}".removesuffix(".00") if value < 10 else f"${value:.0f}"
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:g}"


STACK = [("c-mute", "succeeded"), ("c-stop", "stopped"), ("c-bad", "failed")]


def stack(
    table: dict[tuple[date, str], int], day: date, place: int, top: float
) -> list[Bar]:
    """Return the pieces of one day's bar, from below."""
    bars, y = [], BASE - 0.5
    for look, status in STACK:
        number = table[day, status]
        if number:
            height = max(1.5, (BASE - TOP) * number / top)
            y -= height
            words = f"{day:%d %b}: {number} {status}"
            bars.append(Bar(look, bar_at(place), f"{y:.1f}", f"{height:.1f}", words))
            y -= 0.8
    return bars


def round_up(value: float, *, unit: float = 1.0) -> float:
    """Return a round number above `value`, for the top of an axis."""
    while True:
        for step in (1, 2, 4, 5, 8):
            if value <= step * unit * 2:
                return step * unit * 2
        unit *= 10


def day_labels(days: Sequence[date]) -> list[Label]:
    """Return the days; the month only where it begins."""
    return [
        Label(
            f"{STEP * (place + 0.5):.2f}",
            f"{day.day} {day:%b}" if place == 0 or day.day == 1 else f"{day.day}",
        )
        for place, day in enumerate(days)
    ]


def count_ticks(top: float) -> list[Label]:
    """Return three ticks of an axis of counts."""
    return [
        Label(f"{BASE - (BASE - TOP) * part:.1f}", f"{top * part:g}")
        for part in (0, 0.5, 1)
    ]
