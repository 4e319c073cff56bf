"""Cells of CSV files that a spreadsheet does not run as a formula."""

import json
from typing import Any

FORMULA_PREFIXES = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""Full-width ones too: some spreadsheets treat them alike."""
CONTROL_PREFIXES = ("\t", "\r", "\n")


def format_csv_cell(value: Any) -> Any:
    """Return `value` as a cell: JSON as text, and no text a formula."""
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        plain = value.lstrip("'")  # else `'=x` would be read as a marked `=x`
        if plain.startswith(CONTROL_PREFIXES) or plain.lstrip().startswith(
            FORMULA_PREFIXES
        ):
            return f"'{value}"
    return "" if value is None else value


def restore_csv_cell(text: str) -> str:
    """Return the text that `format_csv_cell` made no formula of."""
    inner = text.removeprefix("'")
    return inner if inner != text and format_csv_cell(inner) == text else text
