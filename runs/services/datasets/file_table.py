"""An imported file as a table: named columns and rows of text."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from runs.engine.types import FrozenModel
from runs.services.datasets.content import MAX_CELL_CHARS, clean_cell
from runs.services.errors import DatasetFileRefused

MAX_FILE_BYTES = 20_000_000
MAX_FILE_ROWS = 10_000
MAX_FILE_COLUMNS = 100
MAX_TABLE_CHARS = 50_000_000
"""Of all cells: shared parts of a YAML file are repeated in each row."""
CELL_CHARS = 20
"""Added for each cell, so that empty ones count too."""
MAX_HEADING_CHARS = 200


class FileTable(FrozenModel):
    """Columns and rows of a file; each row has a cell for each column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]
    """Where each row begins in the file, or its number if rows have no lines."""


class FileRow(NamedTuple):
    """A row before its columns are known to be all."""

    line: int
    cells: dict[str, str]


def build_table(found: Iterable[FileRow]) -> FileTable:
    """Return the table of rows that name their cells; raise `DatasetFileRefused`."""
    rows = list(limit_rows(found))
    columns: dict[str, None] = {}
    for row in rows:
        columns |= dict.fromkeys(row.cells)
    names = check_columns(list(columns))
    return FileTable(
        columns=names,
        rows=tuple(tuple(row.cells.get(name, "") for name in names) for row in rows),
        lines=tuple(row.line for row in rows),
    )


def name_row_cells(cells: Iterable[tuple[str, str]], line: int) -> dict[str, str]:
    """Return the cells by column; raise if two of them have the same name."""
    found: dict[str, str] = {}
    for name, text in cells:
        if name in found:
            raise DatasetFileRefused(
                _("Line %(line)d: %(problem)s.")
                % {"line": line, "problem": describe_name_twice(name)}
            )
        found[name] = text
    return found


def describe_name_twice(name: str) -> str:
    """Say that one of two values would be lost."""
    return _("“%(name)s” occurs twice; rename one") % {"name": name[:MAX_HEADING_CHARS]}


def limit_rows(found: Iterable[FileRow]) -> Iterator[FileRow]:
    """Yield the rows; raise if there are too many, or a cell is too long."""
    size = 0
    for count, row in enumerate(found, 1):
        if count > MAX_FILE_ROWS:
            raise DatasetFileRefused(
                _(
                    "The file has more than %(limit)s rows. Split it, and import the "
                    "parts into several datasets."
                )
                % {"limit": number_format(MAX_FILE_ROWS, force_grouping=True)}
            )
        for name, text in row.cells.items():
            check_cell_length(text, line=row.line, column=name)
            size += len(text) + CELL_CHARS
        if size > MAX_TABLE_CHARS:
            raise DatasetFileRefused(
                _("The rows have more than %(limit)s characters. Split the file.")
                % {"limit": number_format(MAX_TABLE_CHARS, force_grouping=True)}
            )
        yield row


def check_cell_length(text: str, *, line: int, column: str) -> None:
    """Raise `DatasetFileRefused` if a cell is too long."""
    if len(text) <= MAX_CELL_CHARS:
        return
    raise DatasetFileRefused(
        _(
            "Line %(line)d, column “%(column)s”: the text has %(count)s "
            "characters, at most %(limit)s are allowed."
        )
        % {
            "line": line,
            "column": column,
            "count": number_format(len(text), force_grouping=True),
            "limit": number_format(MAX_CELL_CHARS, force_grouping=True),
        }
    )


def check_columns(names: list[str]) -> tuple[str, ...]:
    """Return the names; raise if there are none, too many or one that is too long."""
    if not names:
        raise DatasetFileRefused(_("The file has no rows."))
    if len(names) > MAX_FILE_COLUMNS:
        raise DatasetFileRefused(
            _("The file has %(count)d columns, at most %(limit)d are allowed.")
            % {"count": len(names), "limit": MAX_FILE_COLUMNS}
        )
    if any(len(name) > MAX_HEADING_CHARS for name in names):
        raise DatasetFileRefused(
            _(
                "The name of a column is longer than %(limit)d characters. "
                "Does the first line contain the names of the columns?"
            )
            % {"limit": MAX_HEADING_CHARS}
        )
    return tuple(names)


def format_file_value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return clean_cell(value)
    return clean_cell(json.dumps(value, ensure_ascii=False))
