"""Asking an SQLite file, through a process with limits."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from tools.net.deadline import Deadline
from tools.sandbox.subprocess_protocol import (
    Program,
    parse_program_outcome,
    run_program,
)

MAX_PRINTED = 1 << 16
ROOT = Path(__file__).resolve().parent.parent.parent


def query_sqlite(
    path: str, query: str, values: dict[str, Any], *, limit: int, deadline: Deadline
) -> Any:
    """Return columns and rows; `:name` in the query is `values["name"]`."""
    return ask_sqlite_child(
        {"query": query, "values": values, "limit": limit}, path, deadline
    )


def describe_sqlite_tables(path: str, *, deadline: Deadline) -> str:
    """Return the tables and their columns, a table a line."""
    return format_tables(ask_sqlite_child({"query": None}, path, deadline))


def ask_sqlite_child(question: dict[str, Any], path: str, deadline: Deadline) -> Any:
    """Return the value of the outcome; raise `ToolFailed` or `Interrupted`."""
    left = deadline.remaining()
    asked = {
        **question,
        "path": path,
        "seconds": 3600 if left is None else left,
        "parent": os.getpid(),
    }
    program = Program(
        [sys.executable, "-S", "-B", "-m", "tools.sql.sqlite_child"],
        cwd=ROOT,
        env={"LANG": "C.UTF-8"},
        max_printed=MAX_PRINTED,
    )
    return parse_program_outcome(
        run_program(program, json.dumps(asked).encode(), deadline=deadline)
    )


def format_tables(names: list[Any]) -> str:
    """Return `table(column type, …)`, a table a line."""
    tables: dict[str, list[str]] = {}
    for table, column, kind in names:
        tables.setdefault(table, []).append(f"{column} {kind}".strip())
    return "\n".join(f"{table}({', '.join(cols)})" for table, cols in tables.items())
