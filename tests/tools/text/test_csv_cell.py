"""Cells that a spreadsheet does not evaluate."""

import pytest

from tools.text.csv_cell import format_csv_cell, restore_csv_cell


@pytest.mark.parametrize(
    "formula",
    [
        *("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\n1", " =1"),
        *("＝1+1", "＋1", "－1", "＠SUM(A1)", "\u3000＝1"),
    ],
)
def test_formulas_become_text(formula):
    assert format_csv_cell(formula) == f"'{formula}"


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("a=1", "a=1"),
        (-1, -1),
        (None, ""),
        ("", ""),
        ({"a": "é"}, '{"a": "é"}'),
        ([-1], "[-1]"),
    ],
)
def test_other_values_stay(value, cell):
    assert format_csv_cell(value) == cell


@pytest.mark.parametrize(
    "text", ["=x", "'=x", "''=x", "'x", "it's", "'\t", "' =x", "'"]
)
def test_cells_are_read_back(text):
    assert restore_csv_cell(format_csv_cell(text)) == text
