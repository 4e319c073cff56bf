"""Durations, ages, counts and costs as text in the language of the page."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from math import floor, inf

from django.utils import timezone
from django.utils.formats import date_format, get_format
from django.utils.translation import get_language, gettext_noop, ngettext, pgettext
from django.utils.translation import gettext as _

MILLION = 1_000_000
UNITS = (("s", 60, 1), ("min", 3600, 60), ("h", 86400, 3600), ("d", inf, 86400))
"""(unit, seconds from which the next one is used, seconds in one)."""
DATE_AFTER = 86400 * 30
"""Seconds after which a past time is written as a date."""
HOURS_OMITTED_AFTER = 86400 * 14
"""Seconds from which on the hours of a time to come are left out."""

PAST_TEXTS = {
    "s": gettext_noop("%(count)s s ago"),
    "min": gettext_noop("%(count)s min ago"),
    "h": gettext_noop("%(count)s h ago"),
    "d": gettext_noop("%(count)s d ago"),
}
FUTURE_TEXTS = {
    "s": gettext_noop("in %(count)s s"),
    "min": gettext_noop("in %(count)s min"),
    "h": gettext_noop("in %(count)s h"),
    "d": gettext_noop("in %(count)s d"),
}
EXACT_FUTURE_TEXTS = {
    "h": (60, gettext_noop("in %(count)s h %(rest)s min")),
    "d": (3600, gettext_noop("in %(count)s d %(rest)s h")),
}
"""Seconds of the smaller unit, and the text with both."""
ROUND_DURATION_TEXTS = {
    86400: gettext_noop("%(value)s d"),
    3600: gettext_noop("%(value)s h"),
    60: gettext_noop("%(value)s min"),
    1: gettext_noop("%(value)s s"),
}
"""Text by the seconds in its unit."""


def format_relative_time(at: datetime) -> str:
    """Write a time as `5 min ago`, `in 2 h 4 min`, or a date if it is long past."""
    seconds = (timezone.now() - at).total_seconds()
    size = abs(seconds)
    if seconds >= DATE_AFTER:
        return format_date(at)
    unit, _limit, length = next(one for one in UNITS if size < one[1])
    count = int(size // length)
    if seconds >= 0:
        return _(PAST_TEXTS[unit]) % {"count": count}
    if unit in EXACT_FUTURE_TEXTS and size < HOURS_OMITTED_AFTER:
        smaller, text = EXACT_FUTURE_TEXTS[unit]
        if rest := int(size % length // smaller):
            return _(text) % {"count": count, "rest": rest}
    return _(FUTURE_TEXTS[unit]) % {"count": count}


def format_date(at: datetime) -> str:
    """Write a day: Nov 21, 2026."""
    return date_format(at, pgettext("date format", "M j, Y"))


def format_day(at: date) -> str:
    """Write a day of this year: Nov 21."""
    return date_format(at, pgettext("date format", "M j"))


def format_weekday(at: date) -> str:
    """Write a day of the last week: Sat 21."""
    return date_format(at, pgettext("date format", "D j"))


def format_date_time(at: datetime) -> str:
    """Write a day and a time: Nov 21, 2026, 13:38."""
    return date_format(at, pgettext("date format", "M j, Y, H:i"))


def format_exact_time(at: datetime) -> str:
    """Write a time to the second: Nov 21, 2026, 13:38:05."""
    return date_format(at, pgettext("date format", "M j, Y, H:i:s"))


def format_clock(at: datetime) -> str:
    """Write a time of the day: 13:38."""
    return date_format(at, pgettext("date format", "H:i"))


def duration(value: float | timedelta | None) -> str:
    """Write seconds: 4 ms, 0.6 s, 14 s, 2:11 min, 3 h 12 min; `run.js` does the same.

    The value is rounded first, so that nothing reads 60 s or 10.0 s.
    """
    if value is None:
        return ""
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if (thousandths := _round_half_up(seconds * 1000)) < 100:
        return _("%(value)s ms") % {"value": max(0, thousandths)}
    if (tenths := _round_half_up(seconds * 10)) < 100:
        return _("%(value)s s") % {"value": format_number(tenths / 10, places=1)}
    whole = _round_half_up(seconds)
    if whole < 60:
        return _("%(value)s s") % {"value": whole}
    if whole < 3600:
        return _("%(clock)s min") % {"clock": f"{whole // 60}:{whole % 60:02d}"}
    minutes = _round_half_up(seconds / 60)
    return _("%(hours)s h %(minutes)s min") % {
        "hours": minutes // 60,
        "minutes": minutes % 60,
    }


def lasting(seconds: float) -> str:
    """Write the length of a wait so far in whole seconds, as `app.js` does."""
    whole = max(0, int(seconds))
    if whole < 60:
        return _("%(value)s s") % {"value": whole}
    if whole < 86400:
        return duration(whole)
    return _("%(value)s d") % {"value": whole // 86400}


def format_round_duration(seconds: float) -> str:
    """Write a round length of time at an axis: 0.1 s, 20 min, 100 h, 2 d."""
    if not seconds:
        return "0"
    units = ROUND_DURATION_TEXTS.items()
    size, text = next(
        (size, text)
        for size, text in units
        if size <= seconds and not seconds % size or size == 1
    )
    return _(text) % {"value": _format_round_number(seconds / size)}


def format_short_number(value: float) -> str:
    """Write a round number at an axis: 250, 40 k, 1.2 M."""
    if value >= MILLION:
        return _("%(value)s M") % {"value": _format_round_number(value / MILLION)}
    if value >= 1000:
        return _("%(value)s k") % {"value": _format_round_number(value / 1000)}
    return _format_round_number(value)


def _format_round_number(value: float) -> str:
    """Write a number with three digits at most, without zeros at its end."""
    short = float(f"{value:.3g}")
    return format_number(int(short) if short.is_integer() else short)


def _round_half_up(number: float) -> int:
    return floor(number + 0.5)


def tick(seconds: float) -> str:
    """Write a place on a time axis: 4 ms, 0.5 s, 15 s, 1:10, 2:30:00."""
    if seconds < 1:
        return _("%(value)s ms") % {"value": f"{seconds * 1000:.0f}"}
    if seconds < 60:
        return _("%(value)s s") % {"value": f"{seconds:g}"}
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def format_number(value: float | Decimal, *, places: int | None = None) -> str:
    """Write a number with the locale's separators: 26,078 or 1,234.50.

    Digits are in groups of three in each language, as `Intl` of the browsers has it.
    """
    text = f"{value:,}" if places is None else f"{value:,.{places}f}"
    return text.translate(get_separators(get_language()))


@cache
def get_separators(language: str | None) -> dict[int, str]:
    """Return what stands for the comma and the point; a page has many numbers."""
    return {
        ord(","): get_format("THOUSAND_SEPARATOR", language) or ",",
        ord("."): get_format("DECIMAL_SEPARATOR", language),
    }


def number(value: float | None, form: str = "") -> str:
    """Write a count with separators; empty for None.

    For narrow columns, the form `short` writes 1.41 M from a million on.
    """
    if value is None:
        return ""
    if form == "short" and value >= MILLION:
        return _("%(value)s M") % {"value": format_number(value / MILLION, places=2)}
    return format_number(value)


def format_points(points: float) -> str:
    """Write the size of a difference between two percentages: 2.6 points."""
    words = ngettext("%(count)s point", "%(count)s points", abs(points))
    return words % {"count": format_number(abs(points), places=1)}


def percent_of(part: int, whole: int) -> str:
    """Write a share: 4.5%; 0% only for none at all, empty without a whole."""
    if not whole:
        return ""
    return f"{format_number(100 * part / whole, places=1)}%" if part else "0%"


def dollars(value: Decimal | float | None) -> str:
    """Write a cost: $0.0141, $13.30; empty if nothing is known or was spent."""
    if not value:
        return ""
    return f"${format_number(value, places=2 if value >= 1 else 4)}"


def money(cost: float) -> str:
    """Write a cost with as many digits as it needs: $0, $0.25, $0.0141."""
    is_whole_cents = round(float(cost) * 100, 6).is_integer()
    places = 2 if cost >= 1 or is_whole_cents else 4
    return f"${format_number(cost, places=places)}"
