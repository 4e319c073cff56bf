"""The chart of scores by day."""

from collections.abc import Sequence
from typing import NamedTuple

from runs.services.rules.figures import DayScores

BAR_HEIGHT = 100.0
"""Of the highest bar of the chart, in its own units."""


class DayBar(NamedTuple):
    """A day of the chart: bars of passed and failed runs, the failed on top."""

    scores: DayScores
    x: str
    passed_y: str
    passed_height: str
    failed_y: str
    failed_height: str


class DayChart(NamedTuple):
    """The bars, and the most runs of a day that passed or failed."""

    bars: list[DayBar]
    most: int


def build_day_chart(days: Sequence[DayScores]) -> DayChart:
    """Return the bars of a chart that is 100 high, one column per day."""
    most = max(day.decided for day in days)
    bars = []
    for place, day in enumerate(days):
        passed = BAR_HEIGHT * day.passed / (most or 1)
        failed = BAR_HEIGHT * day.failed / (most or 1)
        bars.append(
            DayBar(
                day,
                f"{100 * (place + 0.1) / len(days):.2f}%",
                f"{BAR_HEIGHT - passed:.2f}%",
                f"{passed:.2f}%",
                f"{BAR_HEIGHT - passed - failed:.2f}%",
                f"{failed:.2f}%",
            )
        )
    return DayChart(bars, most)
