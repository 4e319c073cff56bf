"""Reading a PostgreSQL database, and nothing else."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg

from tools.errors import Interrupted, ToolFailed
from tools.net.deadline import Deadline
from tools.sandbox.abandoned_calls import run_or_abandon
from tools.sql.postgres_query import convert_parameters, refuse_unsafe_query
from tools.sql.rows import MAX_BYTES, QueryFailed, RowTooLarge, build_query_result
from tools.sql.sqlite import format_tables

CONNECT_SECONDS = 10
WRAPPED_QUERY = """
SELECT CASE WHEN total <= %(agentsite_bytes)s THEN j END FROM (
SELECT j, sum(octet_length(j)) OVER (ROWS UNBOUNDED PRECEDING) AS total FROM (
SELECT row_to_json(q)::text AS j FROM (
{query}
) q LIMIT %(agentsite_rows)s) y) z
"""
"""Around every query. The server writes the JSON and counts it, so that no more comes
here than may. With a parameter, the protocol takes one statement only; in brackets that
the query cannot close, that is a SELECT."""

R = TypeVar("R")


class RoleTooStrong(ToolFailed):
    """The role could read files of the server, and run programs."""

    def __init__(self) -> None:
        super().__init__(
            "The database is not asked: the role of this connection is a superuser. "
            "Use one that may only read."
        )


@contextmanager
def open_postgres_for_reading(
    url: str, deadline: Deadline
) -> Iterator["psycopg.Connection[Any]"]:
    """Give a connection within one read-only transaction."""
    left = deadline.remaining() or 60.0
    options = (
        f"-c default_transaction_read_only=on -c statement_timeout={int(left * 1000)}"
        f" -c lock_timeout=2000 -c idle_in_transaction_session_timeout=60000"
        f" -c standard_conforming_strings=on"
    )
    try:
        connection = psycopg.connect(
            url,
            options=options,
            connect_timeout=CONNECT_SECONDS,
            application_name="agentsite-tool",
        )
    except psycopg.Error as error:
        raise QueryFailed(describe_postgres_error(error, url)) from None
    with connection:
        if connection.info.parameter_status("is_superuser") == "on":
            raise RoleTooStrong
        connection.read_only = True
        try:
            yield connection
        except psycopg.Error as error:
            deadline.check()
            raise QueryFailed(describe_postgres_error(error, url)) from None
        except (UnicodeError, OverflowError, ValueError) as error:
            raise QueryFailed(str(error)) from None
        finally:
            connection.rollback()


def describe_postgres_error(error: psycopg.Error, url: str) -> str:
    """Return the server's own words; no address if it was not reached."""
    if error.diag.message_primary:
        return error.diag.message_primary
    if isinstance(error, psycopg.OperationalError):
        return "the database cannot be reached, or refuses the connection"
    return str(error).replace(url, "…")


def query_postgres(
    url: str, query: str, values: dict[str, Any], *, limit: int, deadline: Deadline
) -> Any:
    """Return columns and rows; `:name` in the query is `values["name"]`."""

    refuse_unsafe_query(query)
    used = {**values, "agentsite_rows": limit + 1, "agentsite_bytes": MAX_BYTES}

    def ask(connection: "psycopg.Connection[Any]") -> Any:
        statement = WRAPPED_QUERY.format(query=convert_parameters(query, used))
        return connection.execute(statement.encode(), used).fetchall()

    rows = run_cancelable(url, ask, deadline)
    objects = [parse_postgres_row(row[0]) for row in rows if row[0] is not None]
    if rows and not objects:
        raise RowTooLarge
    columns = list(objects[0]) if objects else []
    return build_query_result(
        columns,
        [list(one.values()) for one in objects],
        limit=limit,
        is_cut=len(objects) < len(rows),
    )


def parse_postgres_row(text: Any) -> dict[str, Any]:
    """Return one row; psycopg gives text, as it was cast to text."""
    row: dict[str, Any] = json.loads(text)
    return row


def describe_postgres_tables(url: str, *, deadline: Deadline) -> str:
    """Return the tables and their columns, a table a line."""

    def ask(connection: "psycopg.Connection[Any]") -> list[Any]:
        return connection.execute(
            "SELECT CASE table_schema WHEN 'public' THEN table_name ELSE "
            "table_schema || '.' || table_name END, column_name, data_type "
            "FROM information_schema.columns WHERE table_schema NOT IN "
            "('pg_catalog', 'information_schema') "
            "ORDER BY table_schema, table_name, ordinal_position LIMIT 2000"
        ).fetchall()

    return format_tables(run_cancelable(url, ask, deadline))


def run_cancelable(
    url: str, ask: Callable[["psycopg.Connection[Any]"], R], deadline: Deadline
) -> R:
    """Ask in a thread that is canceled on the server when `deadline` says so."""
    opened: list[psycopg.Connection[Any]] = []

    def call() -> R:
        with open_postgres_for_reading(url, deadline) as connection:
            opened.append(connection)
            return ask(connection)

    try:
        return run_or_abandon(call, deadline)
    except Interrupted:
        for connection in opened:
            connection.cancel_safe(timeout=2)
        raise
