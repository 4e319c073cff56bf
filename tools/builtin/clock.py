"""The time now, and arithmetic with dates."""

from calendar import monthrange
from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tools.errors import ToolFailed
from tools.registry import tool

WEEKDAYS = (
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
)


class UnknownTimeZone(ToolFailed):
    """The name is not in the time zone database."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"There is no time zone {name[:60]!r}. Use a name such as 'UTC', "
            "'Europe/Berlin' or 'Asia/Shanghai'."
        )


class DateOutOfRange(ToolFailed):
    """The calendar ends before."""

    def __init__(self) -> None:
        super().__init__("The date is outside the years 1 to 9999.")


@tool(effect="read", timeout=5)
def clock(time_zone: str = "UTC") -> dict[str, str | int]:
    """Return the date, weekday and time now.

    Args:
        time_zone: Name of the time zone, such as `Europe/Berlin` or `Asia/Shanghai`.
    """
    now = now_in(load_time_zone(time_zone))
    return {
        "date": now.date().isoformat(),
        "weekday": WEEKDAYS[now.weekday()],
        "time": now.strftime("%H:%M:%S"),
        "iso": now.isoformat(timespec="seconds"),
        "time_zone": time_zone,
        "unix": int(now.timestamp()),
    }


@tool(effect="read", timeout=5)
def add_to_date(
    start: date, days: int = 0, weeks: int = 0, months: int = 0, years: int = 0
) -> dict[str, str]:
    """Return the date that lies some time after `start`, or before it if negative.

    Years and months are added first; a day the month does not have becomes its last.

    Args:
        start: A date as YYYY-MM-DD.
    """
    try:
        year, month = divmod(
            start.year * 12 + start.month - 1 + years * 12 + months, 12
        )
        last = monthrange(year, month + 1)[1]
        moved = date(year, month + 1, min(start.day, last))
        moved += timedelta(days=days, weeks=weeks)
    except (ValueError, OverflowError, IndexError):
        raise DateOutOfRange from None
    return {"date": moved.isoformat(), "weekday": WEEKDAYS[moved.weekday()]}


@tool(effect="read", timeout=5)
def days_between(start: date, end: date) -> int:
    """Return how many days lie between two dates; negative if `end` comes first.

    Args:
        start: A date as YYYY-MM-DD.
        end: A date as YYYY-MM-DD.
    """
    return (end - start).days


def load_time_zone(name: str) -> tzinfo:
    """Return the time zone; raise `UnknownTimeZone`."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UnknownTimeZone(name) from None


def now_in(place: tzinfo) -> datetime:
    """Return the time now; the seam for tests."""
    return datetime.now(UTC).astimezone(place)
