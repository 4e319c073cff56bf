"""When a schedule is due: five cron fields, read in a time zone."""

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from functools import cache
from itertools import islice
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from runs.services.errors import BadCronField, CronTooLong, NeverDue, NotFiveFields

AREAS = frozenset(
    {
        *("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic"),
        *("Australia", "Europe", "Indian", "Pacific"),
    }
)
LONGEST = 120
"""Characters of an expression."""
MOST_COUNTED = 1_000
"""Times that are counted as missed; computing each takes some microseconds."""


class CronField(NamedTuple):
    """One of the five, with what may be written there."""

    name: str
    allowed: str


FIELDS = (
    CronField("minute", "0 to 59"),
    CronField("hour", "0 to 23"),
    CronField("day of the month", "1 to 31, or L for the last"),
    CronField("month", "1 to 12, or JAN to DEC"),
    CronField("day of the week", "0 to 7, or SUN to SAT"),
)


def checked_cron(text: str) -> str:
    """Return the five fields with single spaces; raise `CronRefused`.

    Five fields are never due more often than once a minute.
    """
    parts = text.upper().split()
    if len(parts) != len(FIELDS):
        raise NotFiveFields(len(parts))
    if len(cron := " ".join(parts)) > LONGEST:
        raise CronTooLong(LONGEST)
    for number, (field, written) in enumerate(zip(FIELDS, parts, strict=True)):
        alone = [*("*",) * number, written, *("*",) * (len(FIELDS) - number - 1)]
        try:
            CronSim(" ".join(alone), datetime(2000, 1, 1, tzinfo=UTC))
        except CronSimError:
            raise BadCronField(field.name, written, field.allowed) from None
    if next_time(cron, UTC, after=datetime.now(UTC)) is None:
        raise NeverDue
    return cron


def times(cron: str, zone: tzinfo, *, after: datetime) -> Iterator[datetime]:
    """Yield when `cron` is due after a moment, in UTC and in order.

    A time that a change of the clock leaves out comes right after the change; one that
    comes twice is due once, except where minute or hour begin with `*`.
    """
    try:
        simulated = CronSim(cron, after.astimezone(zone))
    except CronSimError:
        return
    last = after
    for local in simulated:
        at = local.astimezone(UTC)
        if at > last:  # the hour that comes twice is told by its first coming
            yield at
            last = at


def next_time(cron: str, zone: tzinfo, *, after: datetime) -> datetime | None:
    """Return the first time after a moment; None where there is none."""
    return next(times(cron, zone, after=after), None)


def count_times(cron: str, zone: tzinfo, *, after: datetime, until: datetime) -> int:
    """Count the times after a moment up to another, `MOST_COUNTED` at most."""
    number = 0
    for at in islice(times(cron, zone, after=after), MOST_COUNTED):
        if at > until:
            break
        number += 1
    return number


@cache
def zone_names() -> tuple[str, ...]:
    """Return the zones to choose from: UTC, and areas with their places."""
    known = (name for name in available_timezones() if name.split("/")[0] in AREAS)
    return ("UTC", *sorted(known))


def zone_of(name: str) -> tzinfo:
    """Return a zone by its name; raise `KeyError` for one that is not offered."""
    if name == "UTC":
        return UTC
    if name not in zone_names():
        raise KeyError(name)
    return ZoneInfo(name)
