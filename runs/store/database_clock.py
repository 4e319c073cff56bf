"""The database's clock, which all conditions on time use."""

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
