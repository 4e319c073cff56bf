"""The examples of a dataset with all unsaved changes, and those of a saved version."""

from typing import NamedTuple

from django.db.models import Case, Count, Exists, OuterRef, Q, QuerySet, Value, When

from runs.models import Dataset, Example


class UnsavedChanges(NamedTuple):
    """How many examples the next version changes."""

    added: int = 0
    edited: int = 0
    removed: int = 0

    @property
    def total(self) -> int:
        return sum(self)


def select_working_examples(dataset: Dataset) -> QuerySet[Example]:
    """Return what the next version will be made of, removed examples included.

    Added examples come first, so that they are seen.
    """
    change = Example.objects.unsaved().filter(
        dataset=OuterRef("dataset"), number=OuterRef("number")
    )
    is_replaced = Q(from_version__isnull=False) & Exists(change)
    is_added = Case(When(change=Example.Change.ADDED, then=Value(0)), default=Value(1))
    rows = dataset.examples.filter(until_version=None).exclude(is_replaced)
    return rows.order_by(is_added, "number")


def select_examples(dataset: Dataset, version: int | None) -> QuerySet[Example]:
    """Return the examples of a version, or for None those with unsaved changes."""
    if version is None:
        return select_working_examples(dataset)
    return dataset.examples.in_version(version).order_by("number")


def count_unsaved_changes(dataset: Dataset) -> UnsavedChanges:
    rows = dataset.examples.unsaved().order_by().values_list("change")
    return UnsavedChanges(**dict(rows.annotate(rows=Count("pk"))))


def count_working_examples(dataset: Dataset) -> int:
    changes = count_unsaved_changes(dataset)
    saved = dataset.examples.in_version(dataset.version).count()
    return saved + changes.added - changes.removed


def find_working_example(dataset: Dataset, number: int) -> Example | None:
    """Return an example with its unsaved change."""
    rows = dataset.examples.filter(number=number, until_version=None)
    return rows.order_by("-change").first()


def load_saved_examples(dataset: Dataset, numbers: "list[int]") -> dict[int, Example]:
    """Return examples of the newest version by number."""
    rows = dataset.examples.in_version(dataset.version).filter(number__in=numbers)
    return {row.number: row for row in rows}
