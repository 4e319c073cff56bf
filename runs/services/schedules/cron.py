"""When a schedule is due: five cron fields in a time zone."""

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError
from django.utils.translation import gettext_lazy as _

from runs.services.errors import BadCronField, CronTooLong, NeverDue, NotFiveFields

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

TIME_ZONE_AREAS = frozenset(
    {
        *("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic"),
        *("Australia", "Europe", "Indian", "Pacific"),
    }
)
MAX_CRON_CHARS = 120
"""Characters of an expression."""
MAX_COUNTED_TIMES = 1_000
"""Maximum of missed times that are counted; each takes some microseconds."""


class CronField(NamedTuple):
    name: "StrPromise"
    allowed: "StrPromise"


CRON_FIELDS = (
    CronField(_("Minute"), _("0 to 59")),
    CronField(_("Hour"), _("0 to 23")),
    CronField(_("Day of the month"), _("1 to 31, or L for the last day")),
    CronField(_("Month"), _("1 to 12, or JAN to DEC")),
    CronField(_("Day of the week"), _("0 to 7, or SUN to SAT")),
)


def validate_cron(text: str) -> str:
    """Return the five fields with single spaces; raise `CronRefused`."""
    parts = text.upper().split()
    if len(parts) != len(CRON_FIELDS):
        raise NotFiveFields(len(parts))
    if len(cron := " ".join(parts)) > MAX_CRON_CHARS:
        raise CronTooLong(MAX_CRON_CHARS)
    for number, (field, written) in enumerate(zip(CRON_FIELDS, parts, strict=True)):
        alone = [*("*",) * number, written, *("*",) * (len(CRON_FIELDS) - number - 1)]
        try:
            CronSim(" ".join(alone), datetime(2000, 1, 1, tzinfo=UTC))
        except CronSimError:
            raise BadCronField(str(field.name), written, str(field.allowed)) from None
    if find_next_due_time(cron, UTC, after=datetime.now(UTC)) is None:
        raise NeverDue
    return cron


def iter_due_times(cron: str, zone: tzinfo, *, after: datetime) -> Iterator[datetime]:
    """Yield when `cron` is due after a moment, in UTC and in order.

    A time that a clock change skips is due right after the change; one that occurs
    twice is due once, unless minute or hour begin with `*`.
    """
    try:
        simulated = CronSim(cron, after.astimezone(zone))
    except CronSimError:
        return
    last = after
    for local in simulated:
        at = local.astimezone(UTC)
        if at > last:  # an hour that occurs twice is due once
            yield at
            last = at


def find_next_due_time(cron: str, zone: tzinfo, *, after: datetime) -> datetime | None:
    return next(iter_due_times(cron, zone, after=after), None)


def count_due_times(
    cron: str, zone: tzinfo, *, after: datetime, until: datetime
) -> int:
    """Count the times after a moment up to another, at most `MAX_COUNTED_TIMES`."""
    number = 0
    for at in islice(iter_due_times(cron, zone, after=after), MAX_COUNTED_TIMES):
        if at > until:
            break
        number += 1
    return number


@cache
def list_time_zones() -> tuple[str, ...]:
    """Return the available zones: UTC, and areas with their places."""
    known = (
        name for name in available_timezones() if name.split("/")[0] in TIME_ZONE_AREAS
    )
    return ("UTC", *sorted(known))


def get_time_zone(name: str) -> tzinfo:
    """Return a zone by its name; raise `KeyError` if it is not available."""
    if name == "UTC":
        return UTC
    if name not in list_time_zones():
        raise KeyError(name)
    return ZoneInfo(name)
