"""Rows of the table of examples, as a page shows them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import QuerySet

from runs.models import Dataset, Example, Run
from runs.services.datasets.content import (
    INPUT_FIELD,
    ExampleContent,
    get_cell_text,
)
from runs.services.datasets.working_copy import load_saved_examples
from runs.views.datasets.latest_results import LatestResult, load_latest_results

WINDOW = 100
"""Examples that a page shows at first, and that are loaded at a time."""
MAX_SHOWN_CHARS = 300
"""Characters of a cell in the table."""
MAX_TAG_CHIPS = 8


class ExampleCell(NamedTuple):
    """One cell that can be edited."""

    field: str
    """As `set_cell_text` takes it."""
    style: str
    text: str
    is_edited: bool = False
    is_missing: bool = False
    """An input without a value."""


class ExampleRow(NamedTuple):
    example: Example
    cells: list[ExampleCell]
    are_tags_edited: bool = False
    results: Sequence[LatestResult] = ()
    may_see_run: bool = False
    """Its source run."""


class TagCount(NamedTuple):
    name: str
    examples: int


class ExampleWindow(NamedTuple):
    """Some of the examples that match, and what a page says about all."""

    rows: list[ExampleRow]
    total: int
    """Of the examples that match."""
    next_from: int | None
    """Where the following rows begin."""
    tags: list[TagCount]
    """The most frequent ones of all examples that match the search."""


def build_example_window(
    dataset: Dataset,
    examples: QuerySet[Example],
    *,
    user: User | AnonymousUser,
    tag: str = "",
    start: int = 0,
) -> ExampleWindow:
    keys = list(examples.values_list("pk", "tags"))
    counts = Counter(name for _, tags in keys for name in tags)
    found = [pk for pk, tags in keys if not tag or tag in tags]
    shown = found[start : start + WINDOW]
    by_pk = Example.objects.in_bulk(shown)
    ordered = [by_pk[pk] for pk in shown if pk in by_pk]
    rows = build_example_rows(dataset, ordered, user=user)
    end = start + WINDOW
    return ExampleWindow(
        rows,
        len(found),
        end if end < len(found) else None,
        [TagCount(*pair) for pair in counts.most_common(MAX_TAG_CHIPS)],
    )


def build_example_rows(
    dataset: Dataset, examples: Sequence[Example], *, user: User | AnonymousUser
) -> list[ExampleRow]:
    """Return the rows; cells that differ from the newest version are marked."""
    edited = [one.number for one in examples if one.change == Example.Change.EDITED]
    saved = load_saved_examples(dataset, edited) if edited else {}
    results = load_latest_results(dataset, examples, user)
    sources = [one.source_run_id for one in examples if one.source_run_id]
    visible = Run.objects.visible_to(user).filter(pk__in=sources)
    seen = set(visible.values_list("pk", flat=True)) if sources else set()
    return [
        build_example_row(one, dataset.input_names, saved.get(one.number))._replace(
            results=results.get(one.pk, ()), may_see_run=one.source_run_id in seen
        )
        for one in examples
    ]


def build_example_row(
    example: Example, names: Iterable[str], saved: Example | None = None
) -> ExampleRow:
    """Return one row, marked if it differs from `saved`."""
    content = ExampleContent.of(example)
    before = content if saved is None else ExampleContent.of(saved)
    fields = [
        *((INPUT_FIELD + name, "c-in") for name in names),
        ("answer", "c-exp"),
        ("calls", "c-calls"),
    ]
    cells = [
        build_example_cell(content, before, field=field, style=style)
        for field, style in fields
    ]
    return ExampleRow(example, cells, before.tags != content.tags)


def build_example_cell(
    content: ExampleContent, before: ExampleContent, *, field: str, style: str
) -> ExampleCell:
    """Return one cell, cut to what the table shows."""
    text = get_cell_text(content, field)
    return ExampleCell(
        field,
        style,
        text[:MAX_SHOWN_CHARS].replace("\n", ", " if field == "calls" else "\n"),
        text != get_cell_text(before, field),
        field.startswith(INPUT_FIELD) and not text.strip(),
    )
