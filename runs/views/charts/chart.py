"""The axes of charts that templates draw as SVG."""

from typing import NamedTuple

TOP, BASE = 8.5, 112.5


class AxisLabel(NamedTuple):
    at: str
    word: str
    anchor: str = "middle"
    """Which end of the word stands there: start, middle or end."""


def round_up_axis(value: float, *, unit: float = 1.0) -> float:
    """Return a round number above `value`, for the top of an axis."""
    while True:
        for step in (1, 2, 3, 4, 5, 6, 8):
            if value <= step * unit * 2:
                return step * unit * 2
        unit *= 10
