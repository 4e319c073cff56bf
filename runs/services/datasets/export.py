"""Export the examples of a version as CSV or JSONL, which an import reads again."""

import csv
import io
import json
from collections.abc import Iterator

from runs.models import Dataset, Example
from runs.services.datasets.content import (
    INPUT_FIELD,
    ExampleContent,
    format_expected_calls,
)
from runs.services.datasets.working_copy import select_examples
from tools.text.csv_cell import format_csv_cell

EXPORT_COLUMNS = ("expected_answer", "expected_calls", "tags", "source_run")
BATCH = 500


def iter_csv_export(dataset: Dataset, version: int | None) -> Iterator[str]:
    """Yield the lines of a CSV file; an import undoes how formulas are defused."""
    yield "\ufeff"  # spreadsheets read UTF-8 only with this mark
    yield write_csv_line(
        [*map(name_input_column, dataset.input_names), *EXPORT_COLUMNS]
    )
    for example in iter_exported_examples(dataset, version):
        content = ExampleContent.of(example)
        yield write_csv_line(
            [
                *(content.inputs.get(name, "") for name in dataset.input_names),
                content.expected_answer,
                format_expected_calls(content.expected_calls),
                ", ".join(content.tags),
                format_source_run(example),
            ]
        )


def iter_jsonl_export(dataset: Dataset, version: int | None) -> Iterator[str]:
    """Yield the lines of a file with one JSON object per example."""
    for example in iter_exported_examples(dataset, version):
        content = ExampleContent.of(example)
        shape = {
            **{name_input_column(name): text for name, text in content.inputs.items()},
            "expected_answer": content.expected_answer,
            "expected_calls": format_expected_calls(content.expected_calls),
            "tags": ", ".join(content.tags),
            "source_run": format_source_run(example),
        }
        yield json.dumps(shape, ensure_ascii=False) + "\n"


def iter_exported_examples(dataset: Dataset, version: int | None) -> Iterator[Example]:
    """Yield the examples in order; removed ones are left out."""
    rows = select_examples(dataset, version).exclude(change=Example.Change.REMOVED)
    rows = rows.select_related("source_run").only(
        *("dataset", "inputs", "expected_answer", "expected_calls", "tags"),
        "source_run__created_at",
    )
    return rows.iterator(BATCH)


def format_source_run(example: Example) -> str:
    """Return number and time of creation: other sites have runs of the same number."""
    run = example.source_run
    return f"{run.pk}@{run.created_at.isoformat()}" if run else ""


def name_input_column(name: str) -> str:
    """Return the column of a variable, which no other column is called."""
    return INPUT_FIELD + name if name in EXPORT_COLUMNS else name


def write_csv_line(cells: list[str]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(map(format_csv_cell, cells))
    return line.getvalue()
