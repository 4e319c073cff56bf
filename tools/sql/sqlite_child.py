"""Reading an SQLite file, and nothing else, in a process of its own.

`python -S -m tools.sql.sqlite_child FD`: a query can sort gigabytes or find a hole in
SQLite; here it meets the limits of this process, and the worker lives on.
"""

import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tools.errors import ToolFailed
from tools.sandbox.isolated import limit_process
from tools.sql.rows import MAX_BYTES, QueryFailed, build_query_result

MEMORY = 384 << 20
"""Bytes of address space, the interpreter's included; sorting happens in them."""

FILE_SIZE = 1 << 20
"""Bytes of a written file: enough to read a database with a write-ahead log."""

ALLOWED_ACTIONS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
FORBIDDEN_FUNCTIONS = {"load_extension", "fts3_tokenizer", "readfile", "writefile"}
VALUE_ERRORS = (OverflowError, UnicodeError, ValueError)
"""What the module raises itself for numbers and texts that SQLite cannot hold."""


def main() -> None:
    out = int(sys.argv[1])
    asked = json.load(sys.stdin)
    limit_process(
        seconds=asked["seconds"],
        parent=asked["parent"],
        memory=MEMORY,
        file_size=FILE_SIZE,
    )
    answer = json.dumps(build_query_outcome(asked)).encode()
    with os.fdopen(out, "wb") as pipe:
        pipe.write(answer)


def build_query_outcome(asked: dict[str, Any]) -> dict[str, Any]:
    """Return `{"value": …}` or `{"error": sentence}`."""
    try:
        if asked["query"] is None:
            return {"value": list_table_columns(asked["path"])}
        return {"value": query_rows(asked)}
    except ToolFailed as failed:
        return {"error": str(failed)}
    except MemoryError:
        return {"error": str(QueryFailed("it needs more memory than it may have"))}


def query_rows(asked: dict[str, Any]) -> Any:
    """Return columns and rows; `:name` in the query is the value of that name."""
    with open_sqlite_for_reading(asked["path"]) as connection:
        cursor = connection.execute(asked["query"], asked["values"])
        columns = [one[0] for one in cursor.description or ()]
        rows = ([to_json_cell(value) for value in row] for row in cursor)
        return build_query_result(columns, rows, limit=asked["limit"])


def list_table_columns(path: str) -> list[Any]:
    with open_sqlite_for_reading(path) as connection:
        connection.set_authorizer(None)  # our own questions need pragma functions
        return connection.execute(
            "SELECT m.name, c.name, c.type FROM sqlite_schema m "
            "JOIN pragma_table_info(m.name) c "
            "WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite_%' "
            "ORDER BY m.name, c.cid"
        ).fetchall()


@contextmanager
def open_sqlite_for_reading(path: str) -> Iterator[sqlite3.Connection]:
    uri = f"{Path(path).absolute().as_uri()}?mode=ro"
    try:
        connection = sqlite3.connect(uri, uri=True, timeout=2)
    except sqlite3.Error as error:
        raise QueryFailed(str(error)) from None
    with closing(connection):
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_BYTES)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 100_000)
        connection.set_authorizer(authorize_sqlite_action)
        try:
            yield connection
        except (sqlite3.Error, sqlite3.Warning, *VALUE_ERRORS) as error:
            raise QueryFailed(str(error)) from None


def authorize_sqlite_action(
    action: int, first: str | None, second: str | None, *_: Any
) -> int:
    """Allow reading, and functions that do nothing else."""
    is_bad = action == sqlite3.SQLITE_FUNCTION and second in FORBIDDEN_FUNCTIONS
    if action not in ALLOWED_ACTIONS or is_bad:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def to_json_cell(value: Any) -> Any:
    """Return a value JSON can hold; bytes by their size."""
    return f"<{len(value)} bytes>" if isinstance(value, bytes) else value


if __name__ == "__main__":
    main()
