"""Duplicate a dataset with the examples of its newest version."""

from collections.abc import Iterator

from django.contrib.auth.models import User
from django.db import transaction

from runs.models import Dataset, DatasetVersion, Example
from runs.services.agents.manage import duplicate_definition
from runs.services.datasets.edit import INSERT_BATCH


@transaction.atomic
def duplicate_dataset(original: Dataset, *, by: User) -> Dataset:
    """Return a private copy that belongs to `by`, with the saved examples."""
    copy = duplicate_definition(original, by=by)
    rows = list(iter_copied_rows(original, copy))
    Example.objects.bulk_create(rows, batch_size=INSERT_BATCH)
    copy.version = 1 if rows else 0
    copy.next_number = len(rows) + 1
    copy.save(update_fields=["version", "next_number"])
    if rows:
        DatasetVersion.objects.create(
            dataset=copy, number=1, example_count=len(rows), added=len(rows), by=by
        )
    return copy


def iter_copied_rows(original: Dataset, copy: Dataset) -> Iterator[Example]:
    """Yield the rows of the copy, numbered anew and not stored yet."""
    saved = original.examples.in_version(original.version).order_by("number")
    for number, row in enumerate(saved.iterator(INSERT_BATCH), 1):
        row.pk = None
        row._state.adding = True
        row.dataset, row.number = copy, number
        row.from_version, row.until_version = 1, None
        yield row
