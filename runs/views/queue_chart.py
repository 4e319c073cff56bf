"""The queue of the last 24 hours, ready to be drawn as SVG."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from runs.models import QueueSample
from runs.views.charts import BASE, TOP, Label, count_ticks, round_up

SPAN = timedelta(hours=24)
SLOTS = 96
"""Of a quarter of an hour each; the worst minute of each is drawn."""
STEP = 100 / SLOTS
"""Percent of the axis, from slot to slot."""


class QueueChart(NamedTuple):
    """What the template draws."""

    bars: list[tuple[str, str, str, str]]
    """x, y, height and words of each slot with a wait."""
    gaps: list[str]
    """x of the slots in which no worker looked."""
    ticks: list[Label]
    days: list[Label]
    longest: float
    """Seconds."""
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
    longest = max(sample.wait for sample in worst.values())
    top = round_up(max(longest, 1.0))
    bars = []
    for slot, sample in sorted(worst.items()):
        if sample.wait:
            height = max(1.5, (BASE - TOP) * sample.wait / top)
            words = (
                f"{sample.minute:%H:%M} UTC: {sample.queued} queued, "
                f"the oldest for {sample.wait:.0f} s"
            )
            x, y = f"{slot * STEP:.2f}", f"{BASE - 0.5 - height:.1f}"
            bars.append((x, y, f"{height:.1f}", words))
    first = min(worst)
    gaps = [
        f"{slot * STEP:.2f}"
        for slot in range(first, SLOTS - 1)
        if slot not in worst or not worst[slot].workers
    ]
    return QueueChart(
        bars,
        gaps,
        count_ticks(top),
        [
            Label("0", "24 h ago", "start"),
            Label("50", "12 h ago"),
            Label("100", "now", "end"),
        ],
        longest=longest,
        most=max(sample.queued for sample in worst.values()),
        width=f"{STEP * 0.8:.2f}",
    )
