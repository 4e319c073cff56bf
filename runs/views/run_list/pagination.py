"""Keyset pagination of the list of runs."""

from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db import OperationalError
from django.db.models import Q, QuerySet
from django.http import QueryDict

from runs.models import Run
from runs.services.search.run_sample import limit_query_time, sort_by_number
from runs.views.run_list.filter_queries import (
    apply_run_filters,
    build_search_conditions,
)
from runs.views.run_list.filters import RunFilters
from runs.whole_number import parse_whole_number

PAGE_SIZE = 50
COUNT_LIMIT = 1_000
"""Matching runs that are counted at most."""
INDEX_READ_MS = 80
"""Time to find a page of a sorted list by an index, before fewer runs are gathered."""
MAX_GATHERED_RUNS = 20_000


class PageCursor(NamedTuple):
    """A row of the list: its value in the sorted column, and its id."""

    value: Any
    pk: int

    def __str__(self) -> str:
        return f"{self.value}~{self.pk}" if self.value is not None else str(self.pk)


class RunPage(NamedTuple):
    """One page of the list: places, whose runs are loaded by `load_page_runs`."""

    rows: list[PageCursor]
    before: str
    """Cursor of the previous page; empty on the first one."""
    after: str
    """Cursor of the next page; empty on the last one."""


def build_run_queries(
    runs: QuerySet[Run], filters: RunFilters, *, user: User
) -> list[QuerySet[Run]]:
    """Return the matching runs as queries whose rows are to be merged."""
    rows = apply_run_filters(runs, filters, user=user)
    if filters.needs_search_row:  # the search row of a resumed run is out of date
        rows = rows.filter(indexed=True)
    queries = [rows.filter(words) for words in build_search_conditions(filters)]
    if filters.sort:
        return [query.filter(search_row__isnull=False) for query in queries]
    return queries


def paginate_runs(
    queries: list[QuerySet[Run]], query: QueryDict, sort: str, *, gather: bool = False
) -> RunPage:
    """Return one page after or before a cursor, at the same cost at any depth."""
    if (above := parse_page_cursor(query.get("after", ""), sort)) is not None:
        upward = merge_run_lists(
            [fetch_runs_before(one, above, sort, gather=gather) for one in queries]
        )
        found = upward[:PAGE_SIZE][::-1]
        has_above, has_below = len(upward) > PAGE_SIZE, True
    else:
        below = parse_page_cursor(query.get("before", ""), sort)
        downward = merge_run_lists(
            [fetch_runs_after(one, below, sort, gather=gather) for one in queries],
            sign=-1,
        )
        found = downward[:PAGE_SIZE]
        has_above, has_below = below is not None, len(downward) > PAGE_SIZE
    if not found:
        return RunPage([], "", "")
    return RunPage(
        found,
        before=str(found[0]) if has_above else "",
        after=str(found[-1]) if has_below else "",
    )


def load_page_runs(runs: QuerySet[Run], rows: Iterable[PageCursor]) -> list[Run]:
    """Return the runs of a page in its order.

    Finding them needs an index alone, and would be much slower with all their columns.
    """
    keys = [row.pk for row in rows]
    found = {run.pk: run for run in runs.filter(pk__in=keys)}
    return [found[pk] for pk in keys if pk in found]


def count_found_runs(queries: list[QuerySet[Run]]) -> int:
    """Return how many runs match, at most `COUNT_LIMIT` + 1."""
    found: set[int] = set()
    for query in queries:
        ids = query.order_by().values_list("pk", flat=True)
        found.update(ids[: COUNT_LIMIT + 1])
    return min(len(found), COUNT_LIMIT + 1)


def parse_page_cursor(text: str, sort: str) -> PageCursor | None:
    """Parse a cursor of the URL; None if it is invalid."""
    value, _, pk = text.rpartition("~")
    number = parse_whole_number(pk)
    if number is None or bool(value) != bool(sort):
        return None
    if not sort:
        return PageCursor(None, number)
    most = 10**8 if sort == "cost" else 10**18
    try:
        found = Decimal(value)
        rounded = round(found, 6)  # as costs are stored; seconds are exact
        fits = abs(rounded) < most
    except InvalidOperation:
        return None
    if not fits:
        return None
    return PageCursor(float(found) if sort == "seconds" else rounded, number)


def fetch_runs_after(
    runs: QuerySet[Run],
    place: PageCursor | None,
    sort: str,
    *,
    most: int = PAGE_SIZE,
    gather: bool = False,
) -> list[PageCursor]:
    """Return the rows after a cursor, `most` and one more."""
    if place is not None:
        runs = runs.filter(_is_beyond_cursor(place, sort, "lt"))
    if not sort:
        return _read_numbers(sort_by_number(runs, gather=gather), most + 1)
    return _read_sorted(runs, sort, most + 1, largest_first=True)


def fetch_runs_before(
    runs: QuerySet[Run],
    place: PageCursor,
    sort: str,
    *,
    most: int = PAGE_SIZE,
    gather: bool = False,
) -> list[PageCursor]:
    """Return the rows before a cursor, `most` and one more, the nearest first."""
    found = runs.filter(_is_beyond_cursor(place, sort, "gt"))
    if not sort:
        ordered = sort_by_number(found, gather=gather, newest_first=False)
        return _read_numbers(ordered, most + 1)
    return _read_sorted(found, sort, most + 1, largest_first=False)


def _read_numbers(runs: QuerySet[Run], most: int) -> list[PageCursor]:
    return [PageCursor(None, pk) for pk in runs.values_list("pk", flat=True)[:most]]


def _read_sorted(
    runs: QuerySet[Run], sort: str, most: int, *, largest_first: bool
) -> list[PageCursor]:
    """Return the first rows in the order of a column of the search row.

    An index has them in that order, so a list is read until there are enough. If that
    takes long and few runs match, all of them are read and then sorted.
    """
    column = f"search_row__{sort}"
    order = (f"-{column}", "-pk") if largest_first else (column, "pk")
    by_index = runs.order_by(*order).values_list(column, "pk")[:most]
    with suppress(OperationalError), limit_query_time(INDEX_READ_MS):
        return [PageCursor(*row) for row in by_index]
    gathered = runs.order_by().values_list(column, "pk")[: MAX_GATHERED_RUNS + 1]
    rows = [PageCursor(*row) for row in gathered]
    if len(rows) > MAX_GATHERED_RUNS:
        return [PageCursor(*row) for row in by_index.all()]
    return sorted(rows, reverse=largest_first)[:most]


def _is_beyond_cursor(place: PageCursor, sort: str, way: str) -> Q:
    pk = Q(**{f"pk__{way}": place.pk})
    if not sort:
        return pk
    column = f"search_row__{sort}"
    # the first half lets the index end the search, the rest is for equal values
    value = place.value
    return Q(**{f"{column}__{way}e": value}) & (Q(**{f"{column}__{way}": value}) | pk)


def merge_run_lists(
    parts: list[list[PageCursor]], *, sign: int = 1
) -> list[PageCursor]:
    """Merge lists that are sorted by id; a single one stays as it is."""
    if len(parts) == 1:
        return parts[0]
    rows = {row.pk: row for part in parts for row in part}
    return [rows[pk] for pk in sorted(rows, key=lambda pk: sign * pk)]
