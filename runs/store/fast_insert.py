"""Insert or update one row with cached SQL: the hot path of a worker.

The ORM builds each statement anew, which costs more than the statement itself
(docs/decisions/0007). Values still go through the fields, so both databases agree.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from django.db import connection, models

from runs.store.database_clock import SqlTime, build_sql_time
from tools.statement import execute_statement
from tools.text.translatable_field import TranslatableTextField


def insert_row(row: models.Model, *, now: tuple[str, ...] = ()) -> None:
    """Insert `row` and set its key; the columns in `now` get the database's time."""
    fields = tuple(f for f in get_non_key_fields(type(row)) if f.attname not in now)
    done = execute_statement(_insert_sql(type(row), now), _convert_values(row, fields))
    row.pk = done.rows[0][0]
    row._state.adding, row._state.db = False, connection.alias


def update_row(row: models.Model, names: tuple[str, ...]) -> None:
    fields = tuple(get_model_field(type(row), name) for name in names)
    execute_statement(
        _update_sql(type(row), names), [*_convert_values(row, fields), row.pk]
    )


def build_assignments(
    model: type[models.Model], changes: Mapping[str, Any]
) -> tuple[list[str], list[Any]]:
    """Return `column = …` for each change, and the values of the placeholders.

    A change is a value or a `SqlTime`.
    """
    parts, values = list[str](), list[Any]()
    for name, value in changes.items():
        field = get_model_field(model, name)
        if isinstance(value, SqlTime):
            parts.append(f"{quote_name(field.column)} = {value.sql}")
            values += value.values
        else:
            parts.append(f"{quote_name(field.column)} = %s")
            values.append(_convert_value(field, value))
    return parts, values


CONVERTED_FIELDS = (
    models.JSONField,
    models.DateTimeField,
    models.DecimalField,
    TranslatableTextField,
)
"""Fields whose values must be converted for the driver."""


def _convert_values(row: models.Model, fields: Sequence[Any]) -> list[Any]:
    values = row.__dict__
    return [_convert_value(field, values[field.attname]) for field in fields]


def _convert_value(field: Any, value: Any) -> Any:
    return (
        field.get_db_prep_save(value, connection)
        if isinstance(field, CONVERTED_FIELDS)
        else value
    )


@cache
def get_non_key_fields(model: type[models.Model]) -> tuple[Any, ...]:
    """Return the fields that are columns, without the key."""
    return tuple(f for f in model._meta.local_concrete_fields if not f.primary_key)


@cache
def get_model_field(model: type[models.Model], name: str) -> Any:
    """Return a field by its name or its column's attribute."""
    return model._meta.get_field(name)


@cache
def _insert_sql(model: type[models.Model], now: tuple[str, ...]) -> str:
    clock = build_sql_time().sql
    fields = [f for f in get_non_key_fields(model) if f.attname not in now]
    columns = [field.column for field in fields] + [
        get_model_field(model, n).column for n in now
    ]
    placeholders = ", ".join(["%s"] * len(fields) + [clock] * len(now))
    key = model._meta.pk
    assert key is not None
    return (
        f"INSERT INTO {quote_name(model._meta.db_table)} "  # noqa: S608  (our own names)
        f"({', '.join(map(quote_name, columns))}) VALUES ({placeholders}) "
        f"RETURNING {quote_name(key.column)}"
    )


@cache
def _update_sql(model: type[models.Model], names: tuple[str, ...]) -> str:
    changes = ", ".join(
        f"{quote_name(get_model_field(model, n).column)} = %s" for n in names
    )
    table = quote_name(model._meta.db_table)
    return f"UPDATE {table} SET {changes} WHERE id = %s"  # noqa: S608  (our own names)


def quote_name(name: str) -> str:
    return connection.ops.quote_name(name)
