"""Cutting the list of runs into pages by the row each begins after."""

from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import F, Q, QuerySet
from django.http import QueryDict

from runs.models import Run
from runs.views.run_filters import Filters, passing, said_in
from runs.whole_number import whole_number

PAGE = 50
COUNTED = 1_000
"""Of what is found; more are not counted."""


class RunPage(NamedTuple):
    """One page of the list."""

    runs: list[Run]
    before: str
    """Where the page above ends; empty on the first page."""
    after: str
    """Where the page below begins; empty on the last."""


class Place(NamedTuple):
    """A row of the list: its value in the sorted column, and its id."""

    value: Any
    pk: int

    def __str__(self) -> str:
        return f"{self.value}~{self.pk}" if self.value is not None else str(self.pk)


def found_runs(
    runs: QuerySet[Run], filters: Filters, *, user: User
) -> list[QuerySet[Run]]:
    """Return the runs that pass, as queries whose rows are to be merged."""
    rows = passing(runs, filters, user=user)
    if filters.needs_card:  # that of a resumed run says what it was before
        rows = rows.filter(filed=True)
    queries = [rows.filter(words) for words in said_in(filters)]
    if filters.sort:
        queries = [query.filter(card__isnull=False) for query in queries]
        return [
            query.annotate(sorted_by=F(f"card__{filters.sort}")) for query in queries
        ]
    return queries


def page_of(queries: list[QuerySet[Run]], query: QueryDict, sort: str) -> RunPage:
    """Cut one page by the place it begins after, so that depth costs nothing."""
    if (above := read_place(query.get("after", ""), sort)) is not None:
        upward = merged([upwards(one, above, sort) for one in queries])
        found = upward[:PAGE][::-1]
        has_above, has_below = len(upward) > PAGE, True
    else:
        below = read_place(query.get("before", ""), sort)
        downward = merged([downwards(one, below, sort) for one in queries], sign=-1)
        found = downward[:PAGE]
        has_above, has_below = below is not None, len(downward) > PAGE
    if not found:
        return RunPage([], "", "")
    return RunPage(
        found,
        before=str(place_of(found[0], sort)) if has_above else "",
        after=str(place_of(found[-1], sort)) if has_below else "",
    )


def counted(queries: list[QuerySet[Run]]) -> int:
    """Return how many runs are found, `COUNTED` + 1 where it is more."""
    found: set[int] = set()
    for query in queries:
        ids = query.order_by().values_list("pk", flat=True)
        found.update(ids[: COUNTED + 1])
    return min(len(found), COUNTED + 1)


def place_of(run: Run, sort: str) -> Place:
    """Return where a run of the list is."""
    return Place(getattr(run, "sorted_by", None) if sort else None, run.pk)


def read_place(text: str, sort: str) -> Place | None:
    """Read a place from the address; None where there is none."""
    value, _, pk = text.rpartition("~")
    number = whole_number(pk)
    if number is None or bool(value) != bool(sort):
        return None
    if not sort:
        return Place(None, number)
    most = 10**8 if sort == "cost" else 10**18
    try:
        found = Decimal(value)
        rounded = round(found, 6)  # as costs are kept; seconds are exact
        fits = abs(rounded) < most
    except InvalidOperation:
        return None
    if not fits:
        return None
    return Place(float(found) if sort == "seconds" else rounded, number)


def downwards(
    runs: QuerySet[Run], place: Place | None, sort: str, *, most: int = PAGE
) -> list[Run]:
    """Return the rows after a place, `most` and one more."""
    column = f"card__{sort}" if sort else ""
    order = [f"-{column}", "-pk"] if sort else ["-pk"]
    if place is not None:
        runs = runs.filter(_beyond(place, column, "lt"))
    return list(runs.order_by(*order)[: most + 1])


def upwards(runs: QuerySet[Run], place: Place, sort: str) -> list[Run]:
    """Return the rows before a place, the nearest first."""
    column = f"card__{sort}" if sort else ""
    order = [column, "pk"] if sort else ["pk"]
    return list(runs.filter(_beyond(place, column, "gt")).order_by(*order)[: PAGE + 1])


def _beyond(place: Place, column: str, way: str) -> Q:
    pk = Q(**{f"pk__{way}": place.pk})
    if not column:
        return pk
    # the first half lets the index end the search, the rest is for equal values
    value = place.value
    return Q(**{f"{column}__{way}e": value}) & (Q(**{f"{column}__{way}": value}) | pk)


def merged(parts: list[list[Run]], *, sign: int = 1) -> list[Run]:
    """Merge parts that are sorted by id; one part stays as it is."""
    if len(parts) == 1:
        return parts[0]
    rows = {run.pk: run for part in parts for run in part}
    return [rows[pk] for pk in sorted(rows, key=lambda pk: sign * pk)]
