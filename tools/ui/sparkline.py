"""Calls of 30 days as a small drawing: a bar a day, failed calls in colour."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from tools.models import ToolUsage

DAYS = 30
WIDTH, HEIGHT = 3, 18
"""Pixels of a bar with its gap, and of the tallest bar."""


class Day(NamedTuple):
    """The calls of one day."""

    calls: int
    failures: int


def days_of(usage: Iterable[ToolUsage], *, now: datetime) -> list[Day]:
    """Return one entry a day, the oldest first, today last."""
    calls, failures = [0] * DAYS, [0] * DAYS
    for row in usage:
        ago = (now.date() - row.hour.date()).days
        if 0 <= ago < DAYS:
            calls[DAYS - 1 - ago] += row.calls
            failures[DAYS - 1 - ago] += row.failures
    return [Day(*pair) for pair in zip(calls, failures, strict=True)]


def draw(days: list[Day]) -> SafeString:
    """Return the drawing, with its numbers in words for those who cannot see it."""
    most = max(day.calls for day in days)
    if not most:
        return SafeString("")
    bars = []
    for number, day in enumerate(days):
        bad = round(HEIGHT * day.failures / most, 1)
        good = round(HEIGHT * (day.calls - day.failures) / most, 1)
        x = number * WIDTH
        bars += [(x, HEIGHT - good - bad, good, "ok"), (x, HEIGHT - bad, bad, "bad")]
    words = (
        f"{sum(day.calls for day in days)} calls in {DAYS} days, "
        f"{sum(day.failures for day in days)} failed; at most {most} a day"
    )
    return format_html(
        '<svg class="spark" width="{}" height="{}" role="img" aria-label="{}">'
        "<title>{}</title>{}</svg>",
        DAYS * WIDTH,
        HEIGHT,
        words,
        words,
        format_html_join(
            "",
            '<rect x="{}" y="{}" width="2" height="{}" class="{}"/>',
            (bar for bar in bars if bar[2]),
        ),
    )
