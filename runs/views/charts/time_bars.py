"""A chart of stacked bars by hour or day; each bar links to the runs it counts."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

BAR_SHARE = 0.78
"""Of the width of an hour or day."""
MAX_LABELS = 10


class BarPart(NamedTuple):
    """A piece of a bar, in percent of the chart."""

    css_class: str
    y: str
    height: str


class BarContent(NamedTuple):
    """The bar of one hour or day, without its place."""

    query: str
    """Of the list of runs."""
    when: str
    words: str
    parts: list[BarPart]


class TimeBar(NamedTuple):
    """One hour or day."""

    query: str
    words: str
    slot_x: str
    x: str
    parts: list[BarPart]


class TimeBars(NamedTuple):
    """The bars of a period, and their axes; `parts/_time_bars.html` shows them."""

    bars: list[TimeBar]
    slot_width: str
    width: str
    ticks: list[str]
    """The axis from above."""
    labels: list[str]
    """Below each hour or day; empty if there is no room."""


def lay_out_time_bars(contents: Sequence[BarContent], ticks: list[str]) -> TimeBars:
    step = 100 / len(contents)
    every = -(-len(contents) // MAX_LABELS)
    return TimeBars(
        [
            TimeBar(
                content.query,
                content.words,
                f"{step * place:.2f}",
                f"{step * (place + (1 - BAR_SHARE) / 2):.2f}",
                content.parts,
            )
            for place, content in enumerate(contents)
        ],
        slot_width=f"{step:.2f}",
        width=f"{step * BAR_SHARE:.2f}",
        ticks=ticks,
        labels=[
            content.when if place % every == 0 else ""
            for place, content in enumerate(contents)
        ],
    )


def stack_parts(heights: Iterable[tuple[str, float]]) -> list[BarPart]:
    """Return the pieces of a bar: class and height in percent, from below."""
    parts, y = [], 100.0
    for css_class, height in heights:
        y -= height
        parts.append(BarPart(css_class, f"{max(y, 0):.2f}", f"{height:.2f}"))
    return parts
