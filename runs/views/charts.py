"""Numbers of the last seven days, ready to be drawn as SVG by a template."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
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
    """What runs cost, or used."""

    chart: Chart
    cost: Decimal
    tokens: int
    has_price: bool
    """Whether the bars are dollars; tokens otherwise."""


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


def spending_of(tallies: QuerySet[RunTally]) -> Spending | None:
    """Add up what runs cost, by day; their tokens where nothing has a price."""
    days = week()
    recent = tallies.filter(day__gte=days[0])
    sums = recent.values_list("day").annotate(Sum("cost"), Sum("tokens"))
    cost = {day: float(spent) for day, spent, _ in sums}
    tokens = {day: float(used) for day, _, used in sums}
    if not any(tokens.values()) and not any(cost.values()):
        return None
    has_price = any(cost.values())
    values = cost if has_price else tokens
    top = round_up(max(values.values()))
    bars = [
        _bar(place, values[day], top, f"{day:%d %b}: {_amount(values[day], has_price)}")
        for place, day in enumerate(days)
        if values.get(day)
    ]
    ticks = [
        Label(f"{BASE - (BASE - TOP) * part:.1f}", _amount(top * part, has_price))
        for part in (0, 0.5, 1)
    ]
    return Spending(
        Chart(bars, day_labels(days), ticks, {}),
        cost=Decimal(str(sum(cost.values()))),
        tokens=int(sum(tokens.values())),
        has_price=has_price,
    )


def _bar(place: int, value: float, top: float, words: str) -> Bar:
    height = max(1.5, (BASE - TOP) * value / top)
    y = BASE - 0.5 - height
    return Bar("c-stop", bar_at(place), f"{y:.1f}", f"{height:.1f}", words)


def bar_at(place: int) -> str:
    """Return where the bar of a day begins, in percent of the axis."""
    return f"{LEFT + STEP * place:.2f}"


def _amount(value: float, is_cost: bool) -> str:
    """Return a short number: `$0.25`, `1.2 M`, `40 k`."""
    if is_cost:
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


def round_up(value: float) -> float:
    """Return a round number above `value`, for the top of an axis."""
    unit = 1.0
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
