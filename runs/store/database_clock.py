"""The database's clock, for all conditions on time; `site_clock` needs no query."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import DateTimeField, ExpressionWrapper
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from runs.models import Run

MAX_IGNORED = timedelta(seconds=1)
"""A smaller difference may be the duration of the query."""


def db_time_from_now(seconds: float) -> "ExpressionWrapper[Any]":
    """Return the moment `seconds` from now, negative for the past."""
    return ExpressionWrapper(
        Now() + timedelta(seconds=seconds), output_field=DateTimeField()
    )


def read_database_time() -> datetime:
    """Return the current moment by the database's clock."""
    now = build_sql_time()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {now.sql}", now.values)
        (found,) = cursor.fetchone()
    if isinstance(found, datetime):
        return found
    parsed = parse_datetime(found)
    assert parsed is not None, found
    return parsed.replace(tzinfo=UTC)


def read_time_for_runs(runs: Iterable[Run]) -> datetime:
    """Return the current moment by the clock that the leases of `runs` were set by.

    It costs a query only for runs that run, or wait for a moment of that clock.
    """
    timed = (Run.Status.RUNNING, Run.Status.WAITING)
    if any(run.status in timed for run in runs):
        return read_database_time()
    return timezone.now()


class SqlTime(NamedTuple):
    """A moment of the database's clock in a plain SQL statement."""

    sql: str
    values: Sequence[Any]
    """The values of its placeholders."""


@lru_cache(64)
def build_sql_time(seconds: float = 0.0) -> SqlTime:
    """Return the SQL of the moment `seconds` from now; cached."""
    query = Run.objects.all().query
    compiler = query.get_compiler(connection=connection)
    wanted = db_time_from_now(seconds) if seconds else Now()
    sql, values = compiler.compile(wanted.resolve_expression(query))
    return SqlTime(sql, tuple(values))


class SiteClock:
    """The clock of a process, right once it was compared with the database's.

    Only times that are shown come from it.
    """

    def __init__(self) -> None:
        self.ahead = timedelta(0)
        """How much this machine's clock is ahead, negative if it is behind."""

    def compare(self) -> timedelta:
        """Ask the database for the time; return how far this machine is ahead."""
        before = read_machine_time()
        right = read_database_time()
        ahead = before + (read_machine_time() - before) / 2 - right
        self.ahead = ahead if abs(ahead) > MAX_IGNORED else timedelta(0)
        return ahead

    def now(self) -> datetime:
        return read_machine_time() - self.ahead


def read_machine_time() -> datetime:
    return datetime.now(UTC)


site_clock = SiteClock()
