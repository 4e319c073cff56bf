"""How long runs took in the last seven days, ready to be drawn as SVG."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from math import log
from statistics import median
from typing import NamedTuple

from django.db.models import QuerySet

from runs.models import Run
from runs.templatetags.look import duration
from runs.views.charts import BASE, STEP, TOP, Chart, Label, day_labels, week

RUNGS = [
    *((0.1, "0.1 s"), (1, "1 s"), (10, "10 s"), (60, "1 min"), (600, "10 min")),
    *((3600, "1 h"), (36_000, "10 h"), (360_000, "100 h")),
]
"""Seconds at which the axis can begin, end, and have the tick between."""
SAMPLE = 3000
"""Durations are taken from this many of the newest runs at most."""


class Dot(NamedTuple):
    """One day of a line."""

    look: str
    x: str
    y: str
    words: str


class Durations(NamedTuple):
    """How long runs took, in seconds."""

    chart: Chart
    dots: list[Dot]
    middle: float
    most: float
    """95 of 100 runs took at most this long."""


def durations_of(runs: QuerySet[Run]) -> Durations | None:
    """Return median and 95th percentile by day; None where nothing ended."""
    days = week()
    spans = (
        runs.filter(ended_at__isnull=False, started_at__isnull=False)
        .order_by("-pk")
        .values_list("started_at", "ended_at")[:SAMPLE]
    )
    by_day: dict[date, list[float]] = defaultdict(list)
    for started, ended in spans:
        if started and ended and ended.date() >= days[0]:
            by_day[ended.date()].append((ended - started).total_seconds())
    every = sorted(s for seconds in by_day.values() for s in seconds)
    if not every:
        return None
    slow = {day: share(sorted(seconds), 0.95) for day, seconds in by_day.items()}
    usual = {day: median(seconds) for day, seconds in by_day.items()}
    scale = scale_of([*slow.values(), *usual.values()])
    lines = {
        "mute": dots_of("d-mute", "95 % within", slow, scale),
        "ink": dots_of("d-ink", "median", usual, scale),
    }
    points = {
        f"l-{look}": " ".join(f"{dot.x},{dot.y}" for dot in dots)
        for look, dots in lines.items()
    }
    return Durations(
        Chart([], day_labels(days), scale.ticks(), points),
        [dot for dots in lines.values() for dot in dots],
        middle=median(every),
        most=share(every, 0.95),
    )


class Scale(NamedTuple):
    """An axis on which ten times as long is always as much higher.

    The slowest run of a week may take a thousand times as long as the usual one.
    """

    rungs: list[tuple[float, str]]

    def height_of(self, seconds: float) -> float:
        """Return how far down `seconds` stand."""
        low, high = self.rungs[0][0], self.rungs[-1][0]
        part = log(max(seconds, low) / low) / log(high / low)
        return BASE - (BASE - TOP) * min(part, 1)

    def ticks(self) -> list[Label]:
        """Return the ends of the axis, and a rung between where there is one."""
        between = self.rungs[1:-1]
        middle = between[len(between) // 2 :][:1]
        return [
            Label(f"{self.height_of(seconds):.1f}", word)
            for seconds, word in (self.rungs[0], *middle, self.rungs[-1])
        ]


def scale_of(seconds: Sequence[float]) -> Scale:
    """Return the axis that begins and ends at the rungs around `seconds`."""
    below = [n for n, (rung, _) in enumerate(RUNGS[:-1]) if rung <= min(seconds)]
    first = max(below, default=0)
    above = [n for n, (rung, _) in enumerate(RUNGS) if rung >= max(seconds)]
    last = min((n for n in above if n > first), default=len(RUNGS) - 1)
    return Scale(RUNGS[first : last + 1])


def dots_of(
    look: str, words: str, values: dict[date, float], scale: Scale
) -> list[Dot]:
    """Return the points of a line; a day without runs is left out."""
    return [
        Dot(
            look,
            f"{STEP * (place + 0.5):.2f}",
            f"{scale.height_of(values[day]):.1f}",
            f"{day:%d %b}: {words} {duration(values[day])}",
        )
        for place, day in enumerate(week())
        if day in values
    ]


def share(ordered: Sequence[float], part: float) -> float:
    """Return the value that `part` of the ordered values do not pass."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]
