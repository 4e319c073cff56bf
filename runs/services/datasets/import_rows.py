"""Import the rows of an uploaded file as unsaved examples."""

from dataclasses import dataclass, field
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import transaction

from runs.models import Dataset, DatasetUpload, Example, Run
from runs.services.datasets.content import (
    ExampleContent,
    parse_calls_cell,
    parse_tags_cell,
)
from runs.services.datasets.edit import add_examples, edit_examples
from runs.services.datasets.file_table import FileTable
from runs.services.datasets.mapping import (
    ImportMapping,
    find_mapping_problem,
    is_own_export,
)
from runs.services.datasets.same_example import (
    Question,
    build_question_key,
    find_known_questions,
)
from runs.services.datasets.uploads import load_file_table, load_import_mapping
from runs.services.datasets.working_copy import select_working_examples
from runs.services.errors import DatasetFileRefused, ExampleRefused

MAX_RUN_DIGITS = 18


class SkippedRow(NamedTuple):
    line: int
    reason: str


class SourceRunKey(NamedTuple):
    """What a file says about a source run."""

    pk: int | None
    """None if the file has something else than a number."""
    created_at: str | None
    """As exports write it; None if the file has only the number."""


class PlannedRow(NamedTuple):
    line: int
    content: ExampleContent
    source_run: SourceRunKey | None
    same_as: int | None
    """The number of the existing example that asks the same."""
    repeats_line: int | None
    """The earlier line of the file that asks the same."""


@dataclass(frozen=True)
class ImportPlan:
    rows: list[PlannedRow] = field(default_factory=list)
    missing: dict[str, list[int]] = field(default_factory=dict)
    """Lines without a value, by variable; they are skipped."""
    invalid: list[SkippedRow] = field(default_factory=list)
    problem: str = ""
    """Why nothing can be imported."""

    @property
    def new(self) -> list[PlannedRow]:
        return [row for row in self.rows if not is_duplicate(row)]

    @property
    def duplicates(self) -> list[PlannedRow]:
        return [row for row in self.rows if is_duplicate(row)]


class ImportCounts(NamedTuple):
    added: int
    updated: int
    skipped: int


def is_duplicate(row: PlannedRow) -> bool:
    return row.same_as is not None or row.repeats_line is not None


def plan_dataset_import(
    dataset: Dataset, table: FileTable, mapping: ImportMapping, *, by: User
) -> ImportPlan:
    """Return what importing the table would do, without storing anything.

    A row without a value for an input is skipped. In our own exports the example has
    no such input.
    """
    if problem := find_mapping_problem(mapping):
        return ImportPlan(problem=problem)
    plan = ImportPlan()
    has_gaps = is_own_export(table.columns)
    for line, cells in zip(table.lines, table.rows, strict=True):
        found = {name: cells[n] for name, n in mapping.input_columns.items()}
        inputs = {name: text for name, text in found.items() if text.strip()}
        missing = [name for name in found if name not in inputs]
        if missing and not (has_gaps and inputs):
            for name in missing:
                plan.missing.setdefault(name, []).append(line)
            continue
        try:
            content = build_content(inputs, cells, mapping)
        except ExampleRefused as refused:
            plan.invalid.append(SkippedRow(line, str(refused)))
            continue
        source = parse_source_run(cells, mapping)
        plan.rows.append(PlannedRow(line, content, source, None, None))
    plan.rows[:] = mark_duplicates(dataset, plan.rows, by=by)
    return plan


def mark_duplicates(
    dataset: Dataset, rows: list[PlannedRow], *, by: User
) -> list[PlannedRow]:
    """Return the rows with what else asks the same as each of them."""
    runs = find_source_runs(rows, by)
    questions = [
        build_question_key(
            row.content, runs.get(row.source_run) if row.source_run else None
        )
        for row in rows
    ]
    known = find_known_questions(dataset, {one.input_digest for one in questions})
    lines: dict[Question, int] = {}
    marked = []
    for row, question in zip(rows, questions, strict=True):
        first = lines.setdefault(question, row.line)
        marked.append(
            row._replace(
                same_as=known.get(question),
                repeats_line=first if first != row.line else None,
            )
        )
    return marked


def build_content(
    inputs: dict[str, str], cells: tuple[str, ...], mapping: ImportMapping
) -> ExampleContent:
    """Return the example of a row; raise `ExampleRefused`."""
    answers = [cells[n] for n in mapping.positions_of("answer")]
    calls = [cells[n] for n in mapping.positions_of("calls")]
    tags = [cells[n] for n in mapping.positions_of("tags")]
    return ExampleContent(
        inputs=inputs,
        expected_answer="\n".join(answers),
        expected_calls=parse_calls_cell("\n".join(calls)),
        tags=parse_tags_cell(",".join(tags)),
    )


def parse_source_run(
    cells: tuple[str, ...], mapping: ImportMapping
) -> SourceRunKey | None:
    """Return the run of a cell with its number, or with NUMBER@TIME as exports have.

    Tables with empty cells are often written with 7.0 for 7.
    """
    for position in mapping.positions_of("run"):
        number, at, time = cells[position].strip().partition("@")
        number = number.removesuffix(".0")
        if number.isascii() and number.isdigit() and len(number) <= MAX_RUN_DIGITS:
            return SourceRunKey(int(number), time if at else None)
        if number or at:
            return SourceRunKey(None, None)
    return None


def find_source_runs(rows: list[PlannedRow], user: User) -> dict[SourceRunKey, Run]:
    """Return the source runs on this site that `user` may see."""
    keys = {row.source_run for row in rows if row.source_run is not None}
    visible = Run.objects.visible_to(user).filter(
        pk__in={key.pk for key in keys if key.pk is not None}
    )
    found = {
        run.pk: run for run in visible.only("created_at", "turn_ids", "given_turns")
    }
    return {
        key: run
        for key in keys
        if key.pk is not None
        and (run := found.get(key.pk))
        and key.created_at in (None, run.created_at.isoformat())
    }


def count_missing_source_runs(rows: list[PlannedRow], user: User) -> int:
    """Count the rows whose source run `user` cannot use here."""
    found = find_source_runs(rows, user)
    return sum(row.source_run not in found for row in rows if row.source_run)


def import_upload(dataset: Dataset, upload: DatasetUpload, *, by: User) -> ImportCounts:
    """Import an uploaded file and delete it, all or nothing.

    Raises `DatasetFileRefused` or `DatasetFull`.
    """
    mapping = load_import_mapping(upload)
    with transaction.atomic():
        plan = plan_dataset_import(dataset, load_file_table(upload), mapping, by=by)
        if plan.problem:
            raise DatasetFileRefused(plan.problem)
        added, updated = split_rows(plan, mapping)
        runs = find_source_runs(added, by)
        add_examples(
            dataset,
            [row.content for row in added],
            by=by,
            source=Example.Source.IMPORT,
            runs=[
                runs.get(row.source_run) if row.source_run else None for row in added
            ],
        )
        edit_examples(dataset, merge_updates(dataset, updated, mapping), by=by)
        upload.delete()
    skipped = len(plan.rows) - len(added) - len(updated)
    return ImportCounts(len(added), len(updated), skipped)


class SplitRows(NamedTuple):
    """The rows of an import by what happens to them; others are skipped."""

    added: list[PlannedRow]
    updated: list[PlannedRow]
    """Of existing examples."""


def split_rows(plan: ImportPlan, mapping: ImportMapping) -> SplitRows:
    """Apply the rule for duplicates; of rows with equal inputs the last one counts."""
    if mapping.duplicates == "add":
        return SplitRows(plan.rows, [])
    if mapping.duplicates == "skip":
        return SplitRows(plan.new, [])
    added: dict[int, PlannedRow] = {}
    updated: dict[int, PlannedRow] = {}
    for row in plan.rows:
        if row.same_as is not None:
            updated[row.same_as] = row
        else:
            added[row.repeats_line or row.line] = row
    return SplitRows(list(added.values()), list(updated.values()))


UPDATED_FIELDS = {
    "answer": "expected_answer",
    "calls": "expected_calls",
    "tags": "tags",
}


def merge_updates(
    dataset: Dataset, rows: list[PlannedRow], mapping: ImportMapping
) -> dict[int, ExampleContent]:
    """Return the new contents by number; fields without a column stay as they are."""
    mapped = [name for one, name in UPDATED_FIELDS.items() if mapping.positions_of(one)]
    new = {row.same_as: row.content for row in rows}
    existing = select_working_examples(dataset).filter(number__in=new)
    return {
        one.number: ExampleContent.of(one).model_copy(
            update={name: getattr(new[one.number], name) for name in mapped}
        )
        for one in existing
    }
