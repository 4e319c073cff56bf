"""Add, edit and remove examples; each change is unsaved until a version is saved."""

import copy
from collections.abc import Iterable, Mapping, Sequence

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.base import ModelState

from runs.models import Dataset, Example, Run
from runs.services.datasets.content import (
    DEFAULT_INPUT,
    ExampleContent,
    require_inputs,
)
from runs.services.datasets.working_copy import (
    count_working_examples,
    find_working_example,
    load_saved_examples,
    select_working_examples,
)
from runs.services.errors import DatasetFull

MAX_EXAMPLES = 10_000
"""Examples of one dataset."""
INSERT_BATCH = 500
EDITED_COLUMNS = [
    *("change", "by", "inputs", "input_digest", "expected_answer", "expected_calls"),
    *("tags", "search_text"),
]


def lock_dataset(dataset: Dataset) -> Dataset:
    """Return the row, locked until the transaction ends."""
    return Dataset.objects.select_for_update().get(pk=dataset.pk)


def add_examples(
    dataset: Dataset,
    contents: Sequence[ExampleContent],
    *,
    by: User,
    source: str = Example.Source.TYPED,
    runs: Sequence[Run | None] = (),
) -> list[Example]:
    """Add unsaved examples, all or none; raise `ExampleRefused` or `DatasetFull`."""
    for content in contents:
        require_inputs(content)
    sources = list(runs) or [None] * len(contents)
    with transaction.atomic():
        locked = lock_dataset(dataset)
        check_room(locked, more=len(contents))
        rows = [
            Example(
                dataset=locked,
                number=number,
                change=Example.Change.ADDED,
                source=source,
                source_run=run,
                by=by,
                **content.columns(),
            )
            for number, (content, run) in enumerate(
                zip(contents, sources, strict=True), locked.next_number
            )
        ]
        Example.objects.bulk_create(rows, batch_size=INSERT_BATCH)
        add_input_names(locked, contents)
        locked.next_number += len(rows)
        locked.save(update_fields=["next_number", "input_names", "updated_at"])
    return rows


def set_input_names(dataset: Dataset, names: Sequence[str]) -> None:
    """Set the columns, without saving; those that examples use stay, at the end."""
    rows = dataset.examples.filter(until_version=None)
    used = {name for inputs in rows.values_list("inputs", flat=True) for name in inputs}
    stay = [name for name in dataset.input_names if name in used]
    dataset.input_names = list(dict.fromkeys([*names, *stay]))


def check_room(dataset: Dataset, *, more: int) -> None:
    """Raise `DatasetFull` if the dataset cannot take `more` examples."""
    would_be = count_working_examples(dataset) + more
    if would_be > MAX_EXAMPLES:
        raise DatasetFull(would_be=would_be, limit=MAX_EXAMPLES)


def add_input_names(dataset: Dataset, contents: Iterable[ExampleContent]) -> None:
    """Add the variables of `contents` to the columns, without saving.

    The first examples replace the default column.
    """
    is_default = dataset.next_number == 1 and dataset.input_names == [DEFAULT_INPUT]
    names = {} if is_default else dict.fromkeys(dataset.input_names)
    for content in contents:
        names |= dict.fromkeys(content.inputs)
    dataset.input_names = list(names)


def edit_example(
    dataset: Dataset, number: int, content: ExampleContent, *, by: User
) -> Example:
    """Change an example and return it as it is now.

    Raises `Example.DoesNotExist` or `ExampleRefused`.
    """
    edit_examples(dataset, {number: content}, by=by)
    return get_working_example(dataset, number)


def edit_examples(
    dataset: Dataset, contents: Mapping[int, ExampleContent], *, by: User
) -> None:
    """Change examples by number, all or none; removed ones are kept again.

    An edit that restores the saved content leaves no change. Raises
    `Example.DoesNotExist` or `ExampleRefused`.
    """
    for content in contents.values():
        require_inputs(content)
    with transaction.atomic():
        locked = lock_dataset(dataset)
        current = locked.examples.filter(until_version=None, number__in=contents)
        saved = {row.number: row for row in current.exclude(from_version=None)}
        unsaved = {row.number: row for row in current.unsaved()}
        if set(contents) - set(saved) - set(unsaved):
            raise Example.DoesNotExist
        undone = {
            number
            for number, row in saved.items()
            if ExampleContent.of(row) == contents[number]
        }
        current.unsaved().filter(number__in=undone).delete()
        rows = [
            build_edited_row(unsaved.get(number) or saved[number], content, by=by)
            for number, content in contents.items()
            if number not in undone
        ]
        Example.objects.bulk_create(
            [row for row in rows if row.pk is None], batch_size=INSERT_BATCH
        )
        Example.objects.bulk_update(
            [row for row in rows if row.pk is not None],
            EDITED_COLUMNS,
            batch_size=INSERT_BATCH,
        )
        add_input_names(locked, contents.values())
        locked.save(update_fields=["input_names", "updated_at"])


def build_edited_row(row: Example, content: ExampleContent, *, by: User) -> Example:
    """Return the unsaved row with the new content; a saved row is copied."""
    if row.change == "":
        row = copy_unsaved(row, Example.Change.EDITED)
    elif row.change == Example.Change.REMOVED:
        row.change = Example.Change.EDITED
    for name, value in content.columns().items():
        setattr(row, name, value)
    row.by = by
    return row


def get_working_example(dataset: Dataset, number: int) -> Example:
    """Return an example with its unsaved change; raise `Example.DoesNotExist`."""
    row = find_working_example(dataset, number)
    if row is None:
        raise Example.DoesNotExist
    return row


def copy_unsaved(row: Example, change: Example.Change) -> Example:
    """Return an unsaved copy of a saved row, not stored yet."""
    row = copy.copy(row)
    row._state = ModelState()
    row.pk, row.from_version, row.change = None, None, change
    return row


def remove_example(dataset: Dataset, number: int, *, by: User) -> Example | None:
    """Remove an example; return its unsaved row, None if it was never saved."""
    with transaction.atomic():
        locked = lock_dataset(dataset)
        row = get_working_example(locked, number)
        if row.change == Example.Change.ADDED:
            row.delete()
            return None
        if row.change == Example.Change.EDITED:
            row.delete()
            row = get_working_example(locked, number)
        if row.change == "":
            row = copy_unsaved(row, Example.Change.REMOVED)
            row.by = by
            row.save()
    return row


def remove_examples(
    dataset: Dataset, numbers: Iterable[int], *, by: User
) -> list[Example]:
    """Remove examples, all or none; return them as they were."""
    with transaction.atomic():
        locked = lock_dataset(dataset)
        rows = list(
            select_working_examples(locked)
            .filter(number__in=numbers)
            .exclude(change=Example.Change.REMOVED)
        )
        unsaved = [row.pk for row in rows if row.change]
        locked.examples.unsaved().filter(pk__in=unsaved).delete()
        kept = [row.number for row in rows if row.change != Example.Change.ADDED]
        removed = [
            copy_unsaved(row, Example.Change.REMOVED)
            for row in load_saved_examples(locked, kept).values()
        ]
        for row in removed:
            row.by = by
        Example.objects.bulk_create(removed, batch_size=INSERT_BATCH)
    return rows


def restore_examples(dataset: Dataset, numbers: Iterable[int]) -> int:
    """Keep removed examples as they were saved; return how many."""
    with transaction.atomic():
        rows = lock_dataset(dataset).examples.unsaved()
        removed = rows.filter(number__in=numbers, change=Example.Change.REMOVED)
        return removed.delete()[0]


def restore_example(dataset: Dataset, number: int) -> Example:
    """Undo the unsaved change of a saved example, and return it as it was saved."""
    with transaction.atomic():
        locked = lock_dataset(dataset)
        rows = locked.examples.unsaved().filter(number=number)
        rows.exclude(change=Example.Change.ADDED).delete()
        return get_working_example(locked, number)


def discard_changes(dataset: Dataset) -> int:
    """Drop everything that is not saved; return how many examples had changes."""
    with transaction.atomic():
        count, _ = lock_dataset(dataset).examples.unsaved().delete()
    return count
