"""What an import would do, as the page says it."""

from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runs.models import Dataset, DatasetUpload
from runs.services.datasets.import_rows import (
    ImportPlan,
    PlannedRow,
    count_missing_source_runs,
    is_duplicate,
    plan_dataset_import,
    split_rows,
)
from runs.services.datasets.mapping import ImportMapping, list_field_options
from runs.services.datasets.uploads import load_file_table, load_import_mapping

SHOWN_ROWS = 5
MAX_NAMED_LINES = 5
FORMAT_LABELS = {
    "csv": "CSV",
    "jsonl": "JSONL",
    "evals": "OpenAI Evals",
    "promptfoo": "promptfoo",
}
DUPLICATE_RULES = [
    ("skip", gettext_lazy("Skip")),
    ("update", gettext_lazy("Update")),
    ("add", gettext_lazy("Add")),
]


class ImportColumn(NamedTuple):
    """A column of the file and what it becomes."""

    name: str
    sample: str
    options: list[tuple[str, str]]
    selected: str


class ImportPreview(NamedTuple):
    """What the page shows before an import."""

    format_label: str
    row_count: int
    columns: list[ImportColumn]
    rows: list[PlannedRow]
    input_names: list[str]
    new_count: int
    duplicate_count: int
    import_count: int
    """Examples that would be added or updated."""
    problem: str
    skipped: list[str]
    """Sentences on rows that are left out."""
    missing_runs: int
    """Rows that are imported without their source run."""
    rules: list[tuple[str, str]]
    rule: str


def build_import_preview(dataset: Dataset, upload: DatasetUpload) -> ImportPreview:
    table, mapping = load_file_table(upload), load_import_mapping(upload)
    plan = plan_dataset_import(dataset, table, mapping, by=upload.owner)
    first = table.rows[0]
    return ImportPreview(
        format_label=FORMAT_LABELS[upload.file_format],
        row_count=len(table.rows),
        columns=[
            ImportColumn(
                name, sample, list_field_options(name, dataset.input_names), field
            )
            for name, sample, field in zip(
                table.columns, first, mapping.fields, strict=True
            )
        ],
        rows=pick_shown_rows(plan),
        input_names=list(mapping.input_columns),
        new_count=len(plan.new),
        duplicate_count=len(plan.duplicates),
        import_count=count_imported(plan, mapping),
        problem=plan.problem,
        skipped=describe_skipped(plan),
        missing_runs=count_missing_source_runs(
            split_rows(plan, mapping).added, upload.owner
        ),
        rules=[(key, str(label)) for key, label in DUPLICATE_RULES],
        rule=mapping.duplicates,
    )


def pick_shown_rows(plan: ImportPlan) -> list[PlannedRow]:
    """Return the first rows, with a duplicate among them if there is one."""
    shown = plan.rows[:SHOWN_ROWS]
    if plan.duplicates and not any(map(is_duplicate, shown)):
        return [*shown[:-1], plan.duplicates[0]]
    return shown


def count_imported(plan: ImportPlan, mapping: ImportMapping) -> int:
    return len(plan.new if mapping.duplicates == "skip" else plan.rows)


def describe_skipped(plan: ImportPlan) -> list[str]:
    """Return a sentence for each reason why rows are left out."""
    found = [
        ngettext(
            "%(count)s row without a value for %(name)s is skipped: line %(lines)s.",
            "%(count)s rows without a value for %(name)s are skipped: lines %(lines)s.",
            len(lines),
        )
        % {"count": len(lines), "name": name, "lines": name_lines(lines)}
        for name, lines in plan.missing.items()
    ]
    found += [
        _("Line %(line)d is skipped: %(problem)s")
        % {"line": row.line, "problem": row.reason}
        for row in plan.invalid[:MAX_NAMED_LINES]
    ]
    if more := len(plan.invalid[MAX_NAMED_LINES:]):
        found.append(
            ngettext(
                "%(count)s more row is skipped.",
                "%(count)s more rows are skipped.",
                more,
            )
            % {"count": more}
        )
    return found


def name_lines(lines: list[int]) -> str:
    """Return the first line numbers."""
    named = ", ".join(map(str, lines[:MAX_NAMED_LINES]))
    return named if len(lines) <= MAX_NAMED_LINES else f"{named}, …"
