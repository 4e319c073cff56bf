"""Edit cells of an example without undoing what others have changed meanwhile."""

import hashlib
from collections.abc import Iterable, Mapping

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from runs.models import Dataset, Example
from runs.services.datasets.content import (
    ExampleContent,
    clean_cell,
    get_cell_text,
    require_inputs,
    set_cell_text,
)
from runs.services.datasets.edit import (
    edit_example,
    get_working_example,
    lock_dataset,
)
from runs.services.errors import ExampleConflict, ExampleRefused, FieldError

DIGEST_CHARS = 16


def get_cell_token(text: str) -> str:
    """Return a token for the text of a cell, as a browser sends it or as stored."""
    return hashlib.sha256(clean_cell(text).encode()).hexdigest()[:DIGEST_CHARS]


def get_cell_tokens(content: ExampleContent, fields: Iterable[str]) -> dict[str, str]:
    return {field: get_cell_token(get_cell_text(content, field)) for field in fields}


def edit_cells(
    dataset: Dataset,
    number: int,
    texts: Mapping[str, str],
    *,
    seen: Mapping[str, str],
    by: User,
) -> Example:
    """Store the texts that differ from what was seen, and return the example.

    `seen` has tokens of the cells as they were opened; a field without one is stored.
    Raises `ExampleConflict` if such a cell was changed since, `ExampleRefused`, also
    if the example was removed, and `Example.DoesNotExist`.
    """
    with transaction.atomic():
        locked = lock_dataset(dataset)
        row = get_working_example(locked, number)
        if row.change == Example.Change.REMOVED:
            text = _("This example was removed. Undo that before you edit it.")
            raise ExampleRefused([FieldError("", text)])
        stored = ExampleContent.of(row)
        edited = merge_cells(stored, texts, seen=seen)
        return edit_example(dataset, number, edited, by=by)


def merge_cells(
    stored: ExampleContent, texts: Mapping[str, str], *, seen: Mapping[str, str]
) -> ExampleContent:
    """Return the stored content with the edited texts; raise as `edit_cells`."""
    edited, conflicts = stored, dict[str, str]()
    for field, text in texts.items():
        now = get_cell_text(stored, field)
        before = seen.get(field, get_cell_token(now))
        if get_cell_token(text) == before:
            continue
        edited = set_cell_text(edited, field, text)
        if before != get_cell_token(now) and get_cell_text(edited, field) != now:
            conflicts[field] = now
    if conflicts:
        raise ExampleConflict(conflicts)
    require_inputs(edited)
    return edited
