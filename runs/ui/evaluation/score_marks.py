"""Marks of scores, and numbers beside them."""

from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString

MARKS = {
    "p": SafeString('<path d="m3 8.200 3 3 6.500-6.700"/>'),
    "f": SafeString('<path d="m4 4 8 8M12 4l-8 8"/>'),
    "x": SafeString(
        '<path class="solid" d="M5.300 1.500h5.400l3.800 3.800v5.400l-3.800 3.800H5.300'
        'l-3.800-3.800V5.300z"/><path class="cut" d="m5.800 5.800 4.400 4.400'
        'M10.200 5.800l-4.400 4.400"/>'
    ),
    "s": SafeString('<circle cx="8" cy="8" r="2.500"/>'),
    "n": SafeString('<circle cx="8" cy="8" r="5.500" stroke-dasharray="2.500 2.500"/>'),
}
"""Check, cross, octagon, dot, dashed ring; running and waiting have a ring too."""


def score_mark(mark: str) -> SafeString:
    """Draw the mark of a cell or a score; the word stands beside it."""
    return format_html(
        '<svg class="score-mark" viewBox="0 0 16 16" aria-hidden="true">{}</svg>',
        MARKS.get(mark, MARKS["n"]),
    )


def format_position(percent: float) -> str:
    """Write a place on an axis from 0 to 100%."""
    return f"{percent:.1f}%"


def format_signed_points(part: float) -> str:
    """Write a difference of rates in percentage points: +5, −1."""
    points = round(100 * part)
    sign = "−" if points < 0 else "+" if points > 0 else ""
    return f"{sign}{number_format(abs(points))}"


def format_whole_percentage(part: float | None) -> str:
    """Return a part as a whole percentage; empty for None."""
    return "" if part is None else f"{number_format(round(100 * part))}%"
