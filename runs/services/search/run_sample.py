"""The latest runs of a list, and what they add up to; the same cost for any list.

A list can have a million runs. What a page says about it is therefore counted over the
latest ones, with an end to the time it may take, and the page says so.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from math import ceil
from typing import Any, NamedTuple

from django.db import OperationalError, connection, transaction
from django.db.models import Count, F, QuerySet, Sum
from django.db.models.functions import TruncDay, TruncHour, TruncMinute

from runs.models import Run, RunSearchRow
from runs.models.runs import FINISHED_STATUSES

MAX_SAMPLED_RUNS = 10_000
SAMPLE_TIMEOUT_MS = 2_500
"""Of one query; a filter that no index helps would otherwise read every run."""


class SampledGroup(NamedTuple):
    """Sampled runs that have these columns in common."""

    status: str
    agent: int
    owner: int
    spec: int
    source: str
    error: str
    runs: int
    cost: Decimal


GROUP_COLUMNS = ("status", "agent", "owner", "spec", "source", "error_code")


class RunSample(NamedTuple):
    """The latest matching runs."""

    ids: list[int]
    """The newest first."""
    is_whole: bool
    """Whether no other run matches."""

    @property
    def oldest(self) -> datetime | None:
        """When the first of them started; None without any."""
        rows = Run.objects.filter(pk=self.ids[-1]) if self.ids else Run.objects.none()
        return rows.values_list("created_at", flat=True).first()


class StartGroup(NamedTuple):
    """Sampled runs that started in the same minute, hour or day."""

    at: datetime
    status: str
    runs: int


START_UNITS = {"minute": TruncMinute, "hour": TruncHour, "day": TruncDay}


class RunFigures(NamedTuple):
    """What the sampled runs add up to."""

    total: int
    is_whole: bool
    unfinished: int
    failed: int
    ended: int
    cost: Decimal
    median: float | None
    """Seconds of the ended runs, without waiting for people; None without any."""
    p95: float | None


@contextmanager
def limit_query_time(milliseconds: int = SAMPLE_TIMEOUT_MS) -> Iterator[None]:
    """End a longer query with `OperationalError`; SQLite has no such limit."""
    if connection.vendor != "postgresql":
        yield
        return
    is_nested = connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = {int(milliseconds)}")
        yield
        if is_nested:
            cursor.execute("SET LOCAL statement_timeout TO DEFAULT")


def sample_runs(
    queries: list[QuerySet[Run]], *, gather: bool = False
) -> RunSample | None:
    """Return the latest runs of queries whose rows are merged; None if it takes long.

    Only their numbers, which an index has. See `sort_by_number` for `gather`.
    """
    found: set[int] = set()
    try:
        with limit_query_time():
            for query in queries:
                ordered = sort_by_number(query, gather=gather)
                latest = ordered.values_list("pk", flat=True)
                found.update(latest[: MAX_SAMPLED_RUNS + 1])
    except OperationalError:
        return None
    newest = sorted(found, reverse=True)
    return RunSample(newest[:MAX_SAMPLED_RUNS], len(newest) <= MAX_SAMPLED_RUNS)


def sort_by_number(
    runs: QuerySet[Run], *, gather: bool, newest_first: bool = True
) -> QuerySet[Run]:
    """Sort runs by number; with `gather`, after all matching ones have been found.

    Otherwise the database reads runs in the order of their numbers until it has enough,
    which takes long if the matching ones are all at the other end.
    """
    number = F("pk") + 0 if gather else F("pk")  # an index has no sums
    return runs.order_by(number.desc() if newest_first else number.asc())


def group_sample(sample: RunSample) -> list[SampledGroup]:
    """Return the sampled runs by what their columns have in common."""
    rows = filter_by_ids(Run.objects.order_by(), "id", sample.ids)
    groups = rows.values_list(*GROUP_COLUMNS).annotate(n=Count("pk"), spent=Sum("cost"))
    return [SampledGroup(*row) for row in groups]


def group_starts(sample: RunSample, unit: str) -> list[StartGroup]:
    """Return the sampled runs by minute, hour or day of the current time zone."""
    rows = filter_by_ids(Run.objects.order_by(), "id", sample.ids)
    start = START_UNITS[unit]("created_at")
    groups = rows.annotate(start=start).values_list("start", "status")
    return [StartGroup(*row) for row in groups.annotate(n=Count("pk"))]


def summarize_sample(sample: RunSample, groups: list[SampledGroup]) -> RunFigures:
    rows = filter_by_ids(
        RunSearchRow.objects.filter(run__indexed=True), "run_id", sample.ids
    )
    seconds = sorted(rows.values_list("seconds", flat=True))
    ended = sum(one.runs for one in groups if one.status in FINISHED_STATUSES)
    return RunFigures(
        total=len(sample.ids),
        is_whole=sample.is_whole,
        unfinished=sum(one.runs for one in groups) - ended,
        failed=sum(one.runs for one in groups if one.status == "failed"),
        ended=ended,
        cost=sum((one.cost for one in groups), Decimal(0)),
        median=find_percentile(seconds, 0.5),
        p95=find_percentile(seconds, 0.95),
    )


def find_percentile(values: list[float], part: float) -> float | None:
    """Return the value that `part` of sorted values do not pass; None without any."""
    return values[max(0, ceil(len(values) * part) - 1)] if values else None


def count_sample(
    sample: RunSample, rows: QuerySet[Any], *, key: str, column: str
) -> dict[Any, int]:
    """Count the rows of sampled runs, whose numbers are in `key`, by a column."""
    found = filter_by_ids(rows.order_by(), key, sample.ids).values_list(column)
    return dict(found.annotate(n=Count("pk")))


def filter_by_ids(rows: "QuerySet[Any]", key: str, ids: list[int]) -> "QuerySet[Any]":
    """Return the rows with these numbers in a column, as one parameter.

    For ten thousand parameters, Django and the driver take longer than the database.
    """
    table = rows.model._meta.db_table
    if connection.vendor == "postgresql":
        one_of = f'"{table}"."{key}" = ANY(%s::bigint[])'
        values = f"{{{','.join(map(str, ids))}}}"
    else:
        one_of = f'"{table}"."{key}" IN (SELECT value FROM json_each(%s))'  # noqa: S608  # our own names only
        values = json.dumps(ids)
    return rows.extra(where=[one_of], params=[values])  # noqa: S610  # our own names only
