"""A query of the ORM whose SQL is made once: reading rows on the hot paths.

The ORM compiles a query anew each time, which costs several times what the database
takes to answer it (docs/decisions/0007). Here it is compiled once a process.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, models
from django.db.models.query import (  # type: ignore[attr-defined]  # not in the stubs
    get_related_populators,
)

from tools.statement import execute

M = TypeVar("M", bound=models.Model)

SAMPLES: dict[type, Callable[[int], Any]] = {
    int: lambda place: 2_147_483_000 + place,
    str: lambda place: f"\x01{place}",
}
"""What stands in for the values while the query is compiled; found again by value."""


class Prepared(Generic[M]):
    """`make` builds the query from as many values as there are `kinds`.

    The query may not change its shape with its values: no None, no lists.
    """

    def __init__(self, make: Callable[..., "models.QuerySet[M]"], *kinds: type) -> None:
        self.make = make
        self.samples = [SAMPLES[kind](place) for place, kind in enumerate(kinds)]

    def all(self, *values: Any) -> list[M]:
        """Return the rows, with what `select_related` names."""
        plan = self._plan
        found = execute(plan.sql, plan.parameters(values)).rows
        return [plan.row(each) for each in plan.converted(found)]

    def first(self, *values: Any) -> M | None:
        """Return the first row, of a query that is cut to one or finds no more."""
        return next(iter(self.all(*values)), None)

    @cached_property
    def _plan(self) -> "Plan":
        return Plan(self.make(*self.samples), self.samples)


class Plan:
    """A compiled query: SQL, where its values go, and how its rows are read."""

    def __init__(self, rows: "models.QuerySet[Any]", samples: list[Any]) -> None:
        self.compiler: Any = rows.query.get_compiler(DEFAULT_DB_ALIAS)
        self.sql, fixed = self.compiler.as_sql()
        self.fixed = [(each, place_of(each, samples)) for each in fixed]
        info, select = self.compiler.klass_info, self.compiler.select
        columns = info["select_fields"]
        self.model, self.start, self.end = info["model"], columns[0], columns[-1] + 1
        self.names = [column[0].target.attname for column in select[: self.end]]
        self.related = get_related_populators(info, select, DEFAULT_DB_ALIAS)
        self.converters = self.compiler.get_converters([each[0] for each in select])

    def parameters(self, values: tuple[Any, ...]) -> list[Any]:
        """Return what is sent; a driver's own type of number is kept."""
        return [
            each if place is None else type(each)(values[place])
            for each, place in self.fixed
        ]

    def converted(self, found: list[Any]) -> Any:
        """Return the rows as the fields' own values."""
        if not self.converters:
            return found
        return self.compiler.apply_converters(found, self.converters)

    def row(self, values: Any) -> Any:
        """Return one row with the related ones."""
        made = self.model.from_db(
            DEFAULT_DB_ALIAS, self.names[self.start :], values[self.start : self.end]
        )
        for related in self.related:
            related.populate(values, made)
        return made


def place_of(value: Any, samples: list[Any]) -> int | None:
    """Return which value goes here; None where the query's own one stays."""
    return next((place for place, one in enumerate(samples) if one == value), None)
