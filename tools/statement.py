"""Running a statement that is executed again and again, at little cost.

PostgreSQL parses and plans it once per connection; values travel apart from it. That
needs connections that keep what they have prepared: behind a pooler that does not,
`?prepare_threshold=none` in `DATABASE_URL` disables it.
"""

import sqlite3
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections


class StatementResult(NamedTuple):
    """What came of a statement."""

    rows: list[tuple[Any, ...]]
    """What it returned."""
    row_count: int
    """How many rows it changed or returned."""

    @property
    def row(self) -> tuple[Any, ...] | None:
        """The first row; None if there is none."""
        return self.rows[0] if self.rows else None


def execute_statement(sql: str, values: Sequence[Any] = ()) -> StatementResult:
    """Run `sql`, whose placeholders are `%s`, in the thread's transaction or by itself.

    It should be the same text each time. Raises the errors of `django.db`.
    """
    here: Any = connections[DEFAULT_DB_ALIAS]  # its proxy looks it up at each use
    is_postgresql = here.vendor == "postgresql"
    with here.wrap_database_errors:
        if is_postgresql and _needs_pooled_connection(here):
            return _execute_pooled(here.pool, sql, values)
        here.ensure_connection()
        here.validate_no_broken_transaction()
        if is_postgresql:
            return _execute_prepared(here.connection, sql, values)
        return _execute_sqlite(here.connection, sql, values)


def _needs_pooled_connection(here: Any) -> bool:
    """Whether a connection is taken for this statement alone.

    So it is where a thread has none and taking one costs no check of it, as in a
    worker: to make it the thread's and give it back costs as much as the statement.
    """
    return (
        here.connection is None
        and not here.in_atomic_block
        and not here.settings_dict["CONN_HEALTH_CHECKS"]
        and here.pool is not None
    )


def _execute_pooled(pool: Any, sql: str, values: Sequence[Any]) -> StatementResult:
    if pool.closed:
        pool.open()
    connection = pool.getconn()
    try:
        if not connection.autocommit:  # somebody gave it back inside a transaction
            connection.autocommit = True
        return _execute_prepared(connection, sql, values)
    finally:
        pool.putconn(connection)


def _execute_prepared(
    connection: "psycopg.Connection[Any]", sql: str, values: Sequence[Any]
) -> StatementResult:
    cursor: psycopg.Cursor[Any] = psycopg.Cursor(connection)
    # The text is ours; psycopg asks for a literal, which no built text is.
    cursor.execute(sql.encode(), values, prepare=True)
    answer = cursor.pgresult
    rows = cursor.fetchall() if answer and answer.nfields else []
    return StatementResult(rows, cursor.rowcount)


def _execute_sqlite(
    connection: sqlite3.Connection, sql: str, values: Sequence[Any]
) -> StatementResult:
    cursor = connection.execute(_with_question_marks(sql), values)
    rows = cursor.fetchall() if cursor.description else []
    return StatementResult(rows, cursor.rowcount)


@cache
def _with_question_marks(sql: str) -> str:
    """Return the text as SQLite reads it; it keeps what it made of the last ones."""
    return sql.replace("%s", "?").replace("%%", "%")
