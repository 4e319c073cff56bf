"""Writing one row with SQL that is made once: the hot path of a worker.

The ORM compiles each statement anew, which costs more than the statement itself
(docs/decisions/0007). Values still go through the fields, so both databases agree.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from django.db import connection, models

from runs.services.clock import Moment, moment
from tools.statement import execute


def insert(row: models.Model, *, now: tuple[str, ...] = ()) -> None:
    """Insert `row` and set its key; the columns `now` get the database's time."""
    fields = tuple(f for f in plain_fields(type(row)) if f.attname not in now)
    done = execute(_insert_sql(type(row), now), _values(row, fields))
    row.pk = done.rows[0][0]
    row._state.adding, row._state.db = False, connection.alias


def update(row: models.Model, names: tuple[str, ...]) -> None:
    """Write the named columns of `row`."""
    fields = tuple(field_of(type(row), name) for name in names)
    execute(_update_sql(type(row), names), [*_values(row, fields), row.pk])


def assignments(
    model: type[models.Model], changes: Mapping[str, Any]
) -> tuple[list[str], list[Any]]:
    """Return `column = …` for each change, and the values for the holes.

    A change is a value or a `Moment`.
    """
    parts, values = list[str](), list[Any]()
    for name, value in changes.items():
        field = field_of(model, name)
        if isinstance(value, Moment):
            parts.append(f"{quoted(field.column)} = {value.sql}")
            values += value.values
        else:
            parts.append(f"{quoted(field.column)} = %s")
            values.append(_value(field, value))
    return parts, values


PREPARED = (models.JSONField, models.DateTimeField, models.DecimalField)
"""Fields whose values a driver does not take as they are; the others need no call."""


def _values(row: models.Model, fields: Sequence[Any]) -> list[Any]:
    values = row.__dict__
    return [_value(field, values[field.attname]) for field in fields]


def _value(field: Any, value: Any) -> Any:
    return (
        field.get_db_prep_save(value, connection)
        if isinstance(field, PREPARED)
        else value
    )


@cache
def plain_fields(model: type[models.Model]) -> tuple[Any, ...]:
    """Return the fields that are columns, without the key."""
    return tuple(f for f in model._meta.local_concrete_fields if not f.primary_key)


@cache
def field_of(model: type[models.Model], name: str) -> Any:
    """Return a field by its name or its column's attribute."""
    return model._meta.get_field(name)


@cache
def _insert_sql(model: type[models.Model], now: tuple[str, ...]) -> str:
    clock = moment().sql
    fields = [f for f in plain_fields(model) if f.attname not in now]
    columns = [field.column for field in fields] + [
        field_of(model, n).column for n in now
    ]
    holes = ", ".join(["%s"] * len(fields) + [clock] * len(now))
    key = model._meta.pk
    assert key is not None
    return (
        f"INSERT INTO {quoted(model._meta.db_table)} "  # noqa: S608  (our own names)
        f"({', '.join(map(quoted, columns))}) VALUES ({holes}) "
        f"RETURNING {quoted(key.column)}"
    )


@cache
def _update_sql(model: type[models.Model], names: tuple[str, ...]) -> str:
    changes = ", ".join(f"{quoted(field_of(model, n).column)} = %s" for n in names)
    table = quoted(model._meta.db_table)
    return f"UPDATE {table} SET {changes} WHERE id = %s"  # noqa: S608  (our own names)


def quoted(name: str) -> str:
    """Return a table's or column's name as SQL."""
    return connection.ops.quote_name(name)
