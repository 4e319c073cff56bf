"""Numbers of the last seven days, ready to be drawn as SVG by a template."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from django.db.models import QuerySet, Sum
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.models import DailyRunStats
from runs.ui.format import (
    format_day,
    format_number,
    format_short_number,
    money,
    number,
)

DAYS = 7
STEP = 100 / DAYS
"""Percent of the axis, from bar to bar."""
WIDTH = 10.0
"""Of a bar; its templates say the same."""
FIRST_BAR_X = (STEP - WIDTH) / 2
"""Where the first bar begins."""
TOP, BASE = 8.5, 112.5


class ChartBar(NamedTuple):
    """One piece of a stacked bar."""

    css_class: str
    x: str
    y: str
    height: str
    words: str


class AxisLabel(NamedTuple):
    """A word at an axis."""

    at: str
    word: str
    anchor: str = "middle"
    """Which end of the word stands there: start, middle or end."""


class Chart(NamedTuple):
    """What the template draws."""

    bars: list[ChartBar]
    days: list[AxisLabel]
    ticks: list[AxisLabel]
    lines: dict[str, str]
    """Points of each line by its look."""


class OutcomeTotals(NamedTuple):
    """Runs by outcome."""

    chart: Chart
    total: int
    succeeded: int
    failed: int
    limit_reached: int


class SpendingTotals(NamedTuple):
    """What runs cost, or the tokens they used."""

    key: str
    """Its name in the tallies."""
    chart: Chart
    total: float
    has_no_cost: bool
    """Whether these are tokens that no price makes dollars."""


def get_chart_days() -> list[date]:
    """Return the days of the charts, the oldest first."""
    today = datetime.now(UTC).date()
    return [today - timedelta(days=n) for n in range(DAYS - 1, -1, -1)]


def count_outcomes(tallies: QuerySet[DailyRunStats]) -> OutcomeTotals | None:
    """Count the runs that ended, by day and outcome; None where there are none."""
    days = get_chart_days()
    counted = tallies.filter(day__gte=days[0]).values_list("day", "status")
    table: dict[tuple[date, str], int] = defaultdict(int)
    for day, status, runs in counted.annotate(number=Sum("runs")):
        table[day, "succeeded" if status == "canceled" else status] += runs
    if not any(table.values()):
        return None
    highest = max(
        sum(n for (d, _status), n in table.items() if d == day) for day in days
    )
    top = round_up_axis(highest)
    bars = [
        bar
        for n, day in enumerate(days)
        for bar in build_stacked_bars(table, day, n, top)
    ]
    sums = {
        s: sum(n for (_day, t), n in table.items() if t == s)
        for _look, s in STACK_ORDER
    }
    return OutcomeTotals(
        Chart(bars, build_day_labels(days), build_count_ticks(top), {}),
        total=sum(sums.values()),
        **sums,
    )


def sum_spending(tallies: QuerySet[DailyRunStats]) -> list[SpendingTotals]:
    """Add up what runs cost and used, by day; nothing where that is nothing."""
    recent = tallies.filter(day__gte=get_chart_days()[0])
    sums = list(recent.values_list("day").annotate(Sum("cost"), Sum("tokens")))
    cost = {day: float(spent) for day, spent, _used in sums if spent}
    tokens = {day: float(used) for day, _spent, used in sums if used}
    return [
        SpendingTotals(
            key, build_amount_chart(by_day, key), sum(by_day.values()), not cost
        )
        for key, by_day in (("cost", cost), ("tokens", tokens))
        if by_day
    ]


def build_amount_chart(by_day: dict[date, float], key: str) -> Chart:
    """Return a bar for each day with an amount."""
    unit = 0.01 if key == "cost" else 1.0
    days, top = get_chart_days(), round_up_axis(max(by_day.values()), unit=unit)
    bars = [
        _build_amount_bar(n, by_day[day], top, describe_amount(day, by_day[day], key))
        for n, day in enumerate(days)
        if day in by_day
    ]
    ticks = [
        AxisLabel(f"{BASE - (BASE - TOP) * part:.1f}", _format_amount(top * part, key))
        for part in (0, 0.5, 1)
    ]
    return Chart(bars, build_day_labels(days), ticks, {})


def _build_amount_bar(place: int, value: float, top: float, words: str) -> ChartBar:
    height = max(1.5, (BASE - TOP) * value / top)
    y = BASE - 0.5 - height
    return ChartBar("c-stop", format_bar_x(place), f"{y:.1f}", f"{height:.1f}", words)


def format_bar_x(place: int) -> str:
    """Return where the bar of a day begins, in percent of the axis."""
    return f"{FIRST_BAR_X + STEP * place:.2f}"


def describe_amount(day: date, value: float, key: str) -> str:
    """Say what runs cost, or how many tokens they used, on a day."""
    if key == "cost":
        cost = {"day": format_day(day), "cost": money(value)}
        return _("%(day)s: %(cost)s") % cost
    text = ngettext("%(day)s: %(count)s token", "%(day)s: %(count)s tokens", int(value))
    return text % {"day": format_day(day), "count": number(int(value))}


def _format_amount(value: float, key: str) -> str:
    """Return a short number: `$0.25`, `1.2 M`, `40 k`."""
    if key != "cost":
        return format_short_number(value)
    is_whole = value >= 10 or round(float(value), 2).is_integer()
    return f"${format_number(value, places=0 if is_whole else 2)}"


STACK_ORDER = [
    ("c-mute", "succeeded"),
    ("c-stop", "limit_reached"),
    ("c-bad", "failed"),
]


def build_stacked_bars(
    table: dict[tuple[date, str], int], day: date, place: int, top: float
) -> list[ChartBar]:
    """Return the pieces of one day's bar, from below."""
    bars, y = [], BASE - 0.5
    for look, status in STACK_ORDER:
        count = table[day, status]
        if count:
            height = max(1.5, (BASE - TOP) * count / top)
            y -= height
            words = describe_outcome(day, status, count)
            bars.append(
                ChartBar(look, format_bar_x(place), f"{y:.1f}", f"{height:.1f}", words)
            )
            y -= 0.8
    return bars


def describe_outcome(day: date, status: str, count: int) -> str:
    """Say how many runs ended on a day with an outcome of `STACK_ORDER`."""
    match status:
        case "succeeded":
            text = ngettext(
                "%(day)s: %(count)s run succeeded or was canceled",
                "%(day)s: %(count)s runs succeeded or were canceled",
                count,
            )
        case "limit_reached":
            text = ngettext(
                "%(day)s: %(count)s run reached a limit",
                "%(day)s: %(count)s runs reached a limit",
                count,
            )
        case _status:
            text = ngettext(
                "%(day)s: %(count)s run failed",
                "%(day)s: %(count)s runs failed",
                count,
            )
    return text % {"day": format_day(day), "count": number(count)}


def round_up_axis(value: float, *, unit: float = 1.0) -> float:
    """Return a round number above `value`, for the top of an axis."""
    while True:
        for step in (1, 2, 4, 5, 8):
            if value <= step * unit * 2:
                return step * unit * 2
        unit *= 10


def build_day_labels(days: Sequence[date]) -> list[AxisLabel]:
    """Return the days; the month only where it begins."""
    return [
        AxisLabel(
            f"{STEP * (place + 0.5):.2f}",
            format_day(day) if place == 0 or day.day == 1 else f"{day.day}",
        )
        for place, day in enumerate(days)
    ]


def build_count_ticks(top: float) -> list[AxisLabel]:
    """Return three ticks of an axis of counts."""
    return [
        AxisLabel(f"{BASE - (BASE - TOP) * part:.1f}", format_short_number(top * part))
        for part in (0, 0.5, 1)
    ]
