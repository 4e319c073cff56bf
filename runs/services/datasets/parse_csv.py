"""CSV files, separated by commas, semicolons, tabs or bars."""

import csv
import io
import re
from collections.abc import Iterator

from django.utils.translation import gettext as _

from runs.services.datasets.content import clean_cell
from runs.services.datasets.file_table import (
    FileRow,
    FileTable,
    check_columns,
    limit_rows,
)
from runs.services.errors import DatasetFileRefused
from tools.text.csv_cell import restore_csv_cell

SEPARATORS = (",", ";", "\t", "|")
DECLARED_SEPARATOR = re.compile(r'"?sep=([,;\t|])"?\n', re.IGNORECASE)
"""A first line that Excel reads and some programs write."""


def parse_csv(text: str) -> FileTable:
    """Return the table; the first line names the columns."""
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    if declared := DECLARED_SEPARATOR.match(text):
        separator, text = declared[1], "\n" + text[declared.end() :]
    else:
        separator = find_separator(text)
    lines = read_csv_rows(text, separator)
    heading = next(lines, None)
    if heading is None:
        raise DatasetFileRefused(_("The file is empty."))
    names = check_headings([restore_csv_cell(name) for name in heading[1]])
    rows = list(limit_rows(name_cells(lines, names)))
    if not rows:
        raise DatasetFileRefused(_("The file has a header line but no rows."))
    return FileTable(
        columns=tuple(names),
        rows=tuple(tuple(row.cells.values()) for row in rows),
        lines=tuple(row.line for row in rows),
    )


def find_separator(text: str) -> str:
    """Return the separator that the first line has most often outside quotes."""
    first = text.lstrip("\n").partition("\n")[0]
    plain = "".join(first.split('"')[::2])
    return max(SEPARATORS, key=plain.count)


def read_csv_rows(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each line that is not blank with its number."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    start = 1
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise DatasetFileRefused(describe_csv_error(start, str(error))) from None
        if cells is None:
            return
        if any(cell.strip() for cell in cells):
            yield start, cells
        start = reader.line_num + 1


def describe_csv_error(line: int, message: str) -> str:
    if "unexpected end" in message:
        why = _("the quotation mark there is not closed")
    elif "expected after" in message:
        why = _(
            "text follows a closing quotation mark; double the quotation "
            "marks inside the value"
        )
    else:
        why = _("it cannot be read as CSV")
    return _("Line %(line)d: %(problem)s.") % {"line": line, "problem": why}


def check_headings(cells: list[str]) -> list[str]:
    """Return the names of the columns; raise if one is missing or occurs twice."""
    names = [clean_cell(cell).strip() for cell in cells]
    while names and not names[-1]:
        names.pop()  # a separator at the end of each line
    check_columns(names)
    for position, name in enumerate(names, 1):
        if not name:
            raise DatasetFileRefused(
                _("Column %(position)d has no name in the first line.")
                % {"position": position}
            )
        if (first := names.index(name) + 1) < position:
            raise DatasetFileRefused(
                _(
                    "Columns %(first)d and %(second)d are both called “%(name)s”. "
                    "Rename one, and upload the file again."
                )
                % {"first": first, "second": position, "name": name}
            )
    return names


def name_cells(
    lines: Iterator[tuple[int, list[str]]], names: list[str]
) -> Iterator[FileRow]:
    """Yield each line with a cell for each column; raise if it has more cells."""
    for line, cells in lines:
        extra = [cell for cell in cells[len(names) :] if cell.strip()]
        if extra:
            raise DatasetFileRefused(
                _(
                    "Line %(line)d has %(count)d cells, but there are %(columns)d "
                    "columns. Put texts that contain the separator in quotation marks."
                )
                % {"line": line, "count": len(cells), "columns": len(names)}
            )
        padded = cells + [""] * (len(names) - len(cells))
        texts = zip(names, padded, strict=False)
        yield FileRow(
            line, {name: clean_cell(restore_csv_cell(cell)) for name, cell in texts}
        )
