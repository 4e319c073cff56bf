"""A bar chart of the calls in 30 days, failed calls in color."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import ngettext

from tools.models import ToolUsage

DAYS = 30
WIDTH, HEIGHT = 3, 18
"""Pixels of a bar with its gap, and of the tallest bar."""


class UsageDay(NamedTuple):
    calls: int
    failures: int


def sum_usage_by_day(usage: Iterable[ToolUsage], *, now: datetime) -> list[UsageDay]:
    """Return one entry per day of the active time zone, oldest first."""
    today = timezone.localdate(now)
    calls, failures = [0] * DAYS, [0] * DAYS
    for row in usage:
        ago = (today - timezone.localdate(row.hour)).days
        if 0 <= ago < DAYS:
            calls[DAYS - 1 - ago] += row.calls
            failures[DAYS - 1 - ago] += row.failures
    return [UsageDay(*pair) for pair in zip(calls, failures, strict=True)]


def render_sparkline(days: list[UsageDay]) -> SafeString:
    """Return the chart, with its numbers as text for screen readers."""
    most = max(day.calls for day in days)
    if not most:
        return SafeString("")
    bars = []
    for number, day in enumerate(days):
        bad = round(HEIGHT * day.failures / most, 1)
        good = round(HEIGHT * (day.calls - day.failures) / most, 1)
        x = number * WIDTH
        bars += [(x, HEIGHT - good - bad, good, "ok"), (x, HEIGHT - bad, bad, "bad")]
    calls = sum(day.calls for day in days)
    words = ngettext(
        "%(count)d call in 30 days, %(failed)d failed; at most %(most)d per day",
        "%(count)d calls in 30 days, %(failed)d failed; at most %(most)d per day",
        calls,
    ) % {
        "count": calls,
        "failed": sum(day.failures for day in days),
        "most": most,
    }
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
