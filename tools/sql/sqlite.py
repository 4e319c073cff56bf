"""Asking an SQLite file, through a process with limits."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from tools.kinds.subprocess_talk import Program, outcome_of, value_in
from tools.watch import Watch

MAX_PRINTED = 1 << 16
ROOT = Path(__file__).resolve().parent.parent.parent


def query_sqlite(
    path: str, query: str, values: dict[str, Any], *, limit: int, watch: Watch
) -> Any:
    """Return columns and rows; `:name` in the query is `values["name"]`."""
    return ask({"query": query, "values": values, "limit": limit}, path, watch)


def schema_sqlite(path: str, *, watch: Watch) -> str:
    """Return the tables and their columns, a table a line."""
    return tables_in_words(ask({"query": None}, path, watch))


def ask(question: dict[str, Any], path: str, watch: Watch) -> Any:
    """Return the value of the outcome; raise `ToolFailed` or `Interrupted`."""
    left = watch.left()
    asked = {
        **question,
        "path": path,
        "seconds": 3600 if left is None else left,
        "parent": os.getpid(),
    }
    program = Program(
        [sys.executable, "-S", "-B", "-m", "tools.sql.sqlite_inside"],
        cwd=ROOT,
        env={"LANG": "C.UTF-8"},
        max_printed=MAX_PRINTED,
    )
    return value_in(outcome_of(program, json.dumps(asked).encode(), watch=watch))


def tables_in_words(names: list[Any]) -> str:
    """Return `table(column type, …)`, a table a line."""
    tables: dict[str, list[str]] = {}
    for table, column, kind in names:
        tables.setdefault(table, []).append(f"{column} {kind}".strip())
    return "\n".join(f"{table}({', '.join(cols)})" for table, cols in tables.items())
