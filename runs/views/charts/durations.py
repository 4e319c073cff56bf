"""How long runs took in the last seven days, ready to be drawn as SVG."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import date
from math import log
from typing import NamedTuple

from django.db.models import QuerySet, Sum
from django.utils.translation import gettext as _

from runs.models import DailyRunDurations
from runs.services.search.duration_buckets import estimate_percentile
from runs.ui.format import duration, format_day, format_round_duration
from runs.views.charts.chart import (
    BASE,
    STEP,
    TOP,
    AxisLabel,
    Chart,
    build_day_labels,
    get_chart_days,
)

AXIS_BOUNDS = [0.1, 1, 10, 60, 600, 3600, 36_000, 360_000]
"""Seconds at which the axis can begin, end, and have the tick between."""


class ChartPoint(NamedTuple):
    """One day of a line."""

    css_class: str
    x: str
    y: str
    words: str


class DurationStats(NamedTuple):
    """How long runs took, in seconds."""

    chart: Chart
    dots: list[ChartPoint]
    median: float
    p95: float
    """95 of 100 runs took at most this long."""


def summarize_durations(rows: QuerySet[DailyRunDurations]) -> DurationStats | None:
    """Return median and 95th percentile by day; None where nothing ended.

    Without the time in which runs waited for people.
    """
    days = get_chart_days()
    counted = rows.filter(day__gte=days[0]).values_list("day", "bucket")
    by_day: dict[date, Counter[int]] = defaultdict(Counter)
    for day, bucket, runs in counted.annotate(number=Sum("runs")):
        if runs > 0:
            by_day[day][bucket] = runs
    every = sum(by_day.values(), Counter[int]())
    if not every:
        return None
    slow = {day: estimate_percentile(each, 0.95) for day, each in by_day.items()}
    usual = {day: estimate_percentile(each, 0.5) for day, each in by_day.items()}
    scale = fit_log_scale([*slow.values(), *usual.values()])
    lines = {
        "mute": build_chart_points(
            "d-mute", _("%(day)s: 95%% within %(duration)s"), slow, scale
        ),
        "ink": build_chart_points(
            "d-ink", _("%(day)s: median %(duration)s"), usual, scale
        ),
    }
    points = {
        f"l-{look}": " ".join(f"{dot.x},{dot.y}" for dot in dots)
        for look, dots in lines.items()
    }
    return DurationStats(
        Chart([], build_day_labels(days), scale.ticks(), points),
        [dot for dots in lines.values() for dot in dots],
        median=estimate_percentile(every, 0.5),
        p95=estimate_percentile(every, 0.95),
    )


class LogScale(NamedTuple):
    """An axis on which ten times as long is always as much higher.

    The slowest run of a week may take a thousand times as long as the usual one.
    """

    bounds: list[float]

    def get_y(self, seconds: float) -> float:
        """Return how far down `seconds` stand."""
        low, high = self.bounds[0], self.bounds[-1]
        part = log(max(seconds, low) / low) / log(high / low)
        return BASE - (BASE - TOP) * min(part, 1)

    def ticks(self) -> list[AxisLabel]:
        """Return the ends of the axis, and a rung between where there is one."""
        between = self.bounds[1:-1]
        middle = between[len(between) // 2 :][:1]
        return [
            AxisLabel(f"{self.get_y(seconds):.1f}", format_round_duration(seconds))
            for seconds in (self.bounds[0], *middle, self.bounds[-1])
        ]


def fit_log_scale(seconds: Sequence[float]) -> LogScale:
    """Return the axis that begins and ends at the rungs around `seconds`."""
    below = [n for n, rung in enumerate(AXIS_BOUNDS[:-1]) if rung <= min(seconds)]
    first = max(below, default=0)
    above = [n for n, rung in enumerate(AXIS_BOUNDS) if rung >= max(seconds)]
    last = min((n for n in above if n > first), default=len(AXIS_BOUNDS) - 1)
    return LogScale(AXIS_BOUNDS[first : last + 1])


def build_chart_points(
    look: str, text: str, values: dict[date, float], scale: LogScale
) -> list[ChartPoint]:
    """Return the points of a line, titled by `text`; days without runs are omitted."""
    return [
        ChartPoint(
            look,
            f"{STEP * (place + 0.5):.2f}",
            f"{scale.get_y(values[day]):.1f}",
            text % {"day": format_day(day), "duration": duration(values[day])},
        )
        for place, day in enumerate(get_chart_days())
        if day in values
    ]
