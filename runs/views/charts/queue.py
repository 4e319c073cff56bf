"""The queue of the last 24 hours, ready to be drawn as SVG."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from runs.models import QueueSample
from runs.templatetags.look import lasting
from runs.views.charts import BASE, TOP, Label, round_up

SPAN = timedelta(hours=24)
SLOTS = 96
"""Of a quarter of an hour each; the worst minute of each is drawn."""
UNITS = [
    *((1, "s", (1, 2, 4, 10, 20, 40)), (60, "min", (1, 2, 4, 10, 20, 40))),
    *((3600, "h", (1, 2, 4, 8, 12)), (86_400, "d", (1, 2, 4, 8))),
]
"""Seconds, word, and how many of it an axis can end at."""
STEP = 100 / SLOTS
"""Percent of the axis, from slot to slot."""


class QueueChart(NamedTuple):
    """What the template draws."""

    bars: list[tuple[str, str, str, datetime, str]]
    """x, y, height, minute and words of each slot with a wait."""
    gaps: list[str]
    """x of the slots in which no worker looked."""
    ticks: list[Label]
    days: list[Label]
    longest: float
    """Seconds."""
    is_now: bool
    """Whether that wait goes on."""
    most: int
    """Queued runs in the worst minute."""
    width: str


def queue_chart(samples: Iterable[QueueSample], *, now: datetime) -> QueueChart | None:
    """Return the longest wait of each quarter of an hour; None without samples."""
    worst: dict[int, QueueSample] = {}
    for sample in samples:
        slot = SLOTS - 1 - int((now - sample.minute) / (SPAN / SLOTS))
        if 0 <= slot < SLOTS and (slot not in worst or sample.wait > worst[slot].wait):
            worst[slot] = sample
    if not worst:
        return None
    longest = max(worst.values(), key=lambda sample: sample.wait)
    top = round_wait(max(longest.wait, 1.0))
    bars = []
    for slot, sample in sorted(worst.items()):
        if sample.wait:
            height = max(1.5, (BASE - TOP) * sample.wait / top)
            words = f"{sample.queued} queued, the oldest for {lasting(sample.wait)}"
            x, y = f"{slot * STEP:.2f}", f"{BASE - 0.5 - height:.1f}"
            bars.append((x, y, f"{height:.1f}", sample.minute, words))
    first = min(worst)
    gaps = [
        f"{slot * STEP:.2f}"
        for slot in range(first, SLOTS - 1)
        if slot not in worst or not worst[slot].workers
    ]
    return QueueChart(
        bars,
        gaps,
        wait_ticks(top),
        [
            Label("0", "24 h ago", "start"),
            Label("50", "12 h ago"),
            Label("100", "now", "end"),
        ],
        longest=longest.wait,
        is_now=longest.minute == now and longest.wait > 0,
        most=max(sample.queued for sample in worst.values()),
        width=f"{STEP * 0.8:.2f}",
    )


def round_wait(seconds: float) -> float:
    """Return a round length of time that is no shorter, for the top of the axis."""
    rounds = (many * unit for unit, _, ends in UNITS for many in ends)
    return next((top for top in rounds if seconds <= top), round_up(seconds))


def wait_ticks(top: float) -> list[Label]:
    """Return three ticks: 0, 30 s, 1 min."""
    return [
        Label(f"{BASE - (BASE - TOP) * part:.1f}", span(top * part))
        for part in (0, 0.5, 1)
    ]


def span(seconds: float) -> str:
    """Write a round length of time: 30 s, 20 min, 12 h."""
    for size, word, _ in reversed(UNITS):
        if seconds >= size:
            return f"{seconds / size:g} {word}"
    return f"{seconds:g} s" if seconds else "0"
