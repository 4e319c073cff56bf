"""The queue of the last 24 hours, ready to be drawn as SVG."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from django.utils.translation import gettext as _

from runs.models import QueueSample
from runs.ui.format import format_round_duration, lasting, number
from runs.views.charts.chart import BASE, TOP, AxisLabel, round_up_axis

CHART_PERIOD = timedelta(hours=24)
SLOT_COUNT = 96
"""Of a quarter of an hour each; the worst minute of each is drawn."""
AXIS_UNITS = [
    *((1, (1, 2, 4, 10, 20, 40)), (60, (1, 2, 4, 10, 20, 40))),
    *((3600, (1, 2, 4, 8, 12)), (86_400, (1, 2, 4, 8))),
]
"""Seconds of a unit, and how many of it an axis can end at."""
STEP = 100 / SLOT_COUNT
"""Percent of the axis, from slot to slot."""


class QueueChart(NamedTuple):
    """What the template draws."""

    bars: list[tuple[str, str, str, datetime, str]]
    """x, y, height, minute and words of each slot with a wait."""
    gaps: list[str]
    """x of the slots in which no worker looked."""
    ticks: list[AxisLabel]
    days: list[AxisLabel]
    longest: float
    """Seconds."""
    is_now: bool
    """Whether that wait continues."""
    max_queued: int
    """Queued runs in the worst minute."""
    width: str


def build_queue_chart(
    samples: Iterable[QueueSample], *, now: datetime
) -> QueueChart | None:
    """Return the maximum wait of each quarter of an hour; None without samples."""
    worst: dict[int, QueueSample] = {}
    for sample in samples:
        slot = SLOT_COUNT - 1 - int((now - sample.minute) / (CHART_PERIOD / SLOT_COUNT))
        if 0 <= slot < SLOT_COUNT and (
            slot not in worst or sample.wait > worst[slot].wait
        ):
            worst[slot] = sample
    if not worst:
        return None
    longest = max(worst.values(), key=lambda sample: sample.wait)
    top = round_up_wait(max(longest.wait, 1.0))
    bars = []
    for slot, sample in sorted(worst.items()):
        if sample.wait:
            height = max(1.5, (BASE - TOP) * sample.wait / top)
            words = _("%(count)s queued, the oldest for %(wait)s") % {
                "count": number(sample.queued),
                "wait": lasting(sample.wait),
            }
            x, y = f"{slot * STEP:.2f}", f"{BASE - 0.5 - height:.1f}"
            bars.append((x, y, f"{height:.1f}", sample.minute, words))
    first = min(worst)
    gaps = [
        f"{slot * STEP:.2f}"
        for slot in range(first, SLOT_COUNT - 1)
        if slot not in worst or not worst[slot].workers
    ]
    return QueueChart(
        bars,
        gaps,
        build_wait_ticks(top),
        [
            AxisLabel("0", _("%(count)s h ago") % {"count": 24}, "start"),
            AxisLabel("50", _("%(count)s h ago") % {"count": 12}),
            AxisLabel("100", _("now"), "end"),
        ],
        longest=longest.wait,
        is_now=longest.minute == now and longest.wait > 0,
        max_queued=max(sample.queued for sample in worst.values()),
        width=f"{STEP * 0.8:.2f}",
    )


def round_up_wait(seconds: float) -> float:
    """Return a round length of time that is not shorter, for the top of the axis."""
    rounds = (many * unit for unit, ends in AXIS_UNITS for many in ends)
    return next(
        (top for top in rounds if seconds <= top), round_up_axis(seconds, unit=86_400)
    )


def build_wait_ticks(top: float) -> list[AxisLabel]:
    """Return three ticks: 0, 30 s, 1 min."""
    return [
        AxisLabel(
            f"{BASE - (BASE - TOP) * part:.1f}", format_round_duration(top * part)
        )
        for part in (0, 0.5, 1)
    ]
