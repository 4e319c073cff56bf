"""The examples that Python tools begin with: each works as it stands."""

import pytest

from tools.forms.python_examples import MONTY_MODULES, PYTHON_EXAMPLES
from tools.net.deadline import Deadline
from tools.sandbox.monty import run_monty

WORDS, DATES, JSON, PATTERN = PYTHON_EXAMPLES


@pytest.mark.parametrize(
    ("example", "inputs", "value"),
    [
        (WORDS, {"input": "a word"}, {"words": 2, "longest": "word"}),
        (DATES, {"start": "2026-11-20", "days": 3}, {"date": "2026-11-25"}),
        (
            JSON,
            {"input": '[{"status": "open", "amount": 3}, {"status": "paid"}]'},
            {"count": 1, "total": 3},
        ),
        (PATTERN, {"input": "b@x.org, a@x.org"}, ["a@x.org", "b@x.org"]),
    ],
)
def test_an_example_works_with_its_arguments(example, inputs, value):
    assert set(example.arguments or {"input": "string"}) == set(inputs)
    assert (
        run_monty(example.code, inputs, deadline=Deadline(seconds=5), memory=64 << 20)
        == value
    )


def test_code_can_import_the_listed_modules():
    code = "\n".join([*(f"import {name}" for name in MONTY_MODULES), "1"])

    assert run_monty(code, {}, deadline=Deadline(seconds=5), memory=64 << 20) == 1
