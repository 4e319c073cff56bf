"""Read one row with SQL that is built once: claims and polling of the API.

The ORM builds each query anew, which takes ten times as long as reading the row
(docs/decisions/0007). Values still go through the fields, so both databases agree.
"""

from functools import cache
from typing import Any, NamedTuple, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, models

from runs.store.fast_insert import get_model_field, quote_name
from tools.statement import execute_statement

M = TypeVar("M", bound=models.Model)


def select_row(
    model: type[M],
    related: tuple[str, ...] = (),
    *,
    newest_by: str = "",
    **condition: Any,
) -> M | None:
    """Return the row whose unique column has the one value in `condition`.

    `related` names foreign keys as `select_related` does, each after its parent. Of
    several rows, that with the highest value of the column `newest_by` is returned.
    """
    ((column, value),) = condition.items()
    query = _build_select(model, column, related, newest_by)
    row = execute_statement(query.sql, [value]).row
    if row is None:
        return None
    found: dict[str, Any] = {}
    for table in query.tables:
        values = row[table.start : table.start + len(table.fields)]
        found[table.path] = instance = _build_instance(table, values)
        if table.path:
            parent, _, name = table.path.rpartition("__")
            if found[parent] is not None:
                setattr(found[parent], name, instance)
    root: M = found[""]
    return root


class _Table(NamedTuple):
    """The columns of one table in a query."""

    path: str
    model: type[models.Model]
    fields: tuple[Any, ...]
    start: int


class _Select(NamedTuple):
    """A query, and how to read its rows."""

    sql: str
    tables: tuple[_Table, ...]


@cache
def _build_select(
    model: type[models.Model], column: str, related: tuple[str, ...], newest_by: str
) -> _Select:
    tables, columns, joins = list[_Table](), list[str](), list[str]()
    by_path: dict[str, type[models.Model]] = {}
    for number, path in enumerate(("", *related)):
        parent, _, name = path.rpartition("__")
        table: Any = model
        if path:
            key = get_model_field(by_path[parent], name)
            table = key.related_model
            above = 0 if not parent else related.index(parent) + 1
            joins.append(
                f"LEFT JOIN {quote_name(table._meta.db_table)} t{number} "
                f"ON t{number}.id = t{above}.{quote_name(key.column)}"
            )
        by_path[path] = table
        fields = tuple(table._meta.concrete_fields)
        tables.append(_Table(path, table, fields, len(columns)))
        columns += [f"t{number}.{quote_name(field.column)}" for field in fields]
    where = quote_name(get_model_field(model, column).column)
    sql = (
        f"SELECT {', '.join(columns)} "  # noqa: S608  (our own names)
        f"FROM {quote_name(model._meta.db_table)} t0 {' '.join(joins)} "
        f"WHERE t0.{where} = %s"
    )
    if newest_by:
        newest = quote_name(get_model_field(model, newest_by).column)
        sql += f" ORDER BY t0.{newest} DESC LIMIT 1"
    return _Select(sql, tuple(tables))


def _build_instance(table: _Table, values: tuple[Any, ...]) -> models.Model | None:
    """Return the row of one table; None if the foreign key was empty."""
    if table.path and values[0] is None:
        return None
    names = [field.attname for field in table.fields]
    converted = [
        _convert_value(field, value)
        for field, value in zip(table.fields, values, strict=True)
    ]
    return table.model.from_db(DEFAULT_DB_ALIAS, names, converted)


def _convert_value(field: Any, value: Any) -> Any:
    for convert in _get_converters(field):
        value = convert(value, field.cached_col, connection)
    return value


@cache
def _get_converters(field: Any) -> tuple[Any, ...]:
    from_database = connection.ops.get_db_converters(field.cached_col)
    return (*from_database, *field.get_db_converters(connection))
