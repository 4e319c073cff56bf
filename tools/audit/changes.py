"""What differs between two states of a row, as `{field: [before, after]}`."""

from os.path import commonprefix
from typing import Any

from django.db import models
from django.utils.functional import Promise

from tools.audit.masking import is_secret_column, mask_column, mask_text

IGNORED_COLUMNS = frozenset(
    {
        *("id", "created_at", "updated_at", "last_login", "last_used_at"),
        *("last_error", "revision", "date_joined"),
    }
)
"""Columns that move by themselves."""

LONG_TEXT = 300
"""Characters of a text that is kept whole."""

CONTEXT_CHARACTERS = 60
"""Characters kept on each side of a difference."""

ColumnValues = dict[str, Any]
FieldChanges = dict[str, list[Any]]
RelatedNames = dict[tuple[Any, Any], str]
"""Of rows, by table and key."""


def get_audited_columns(
    model: type[models.Model], *, ignore: frozenset[str]
) -> list[Any]:
    """Return the columns worth keeping."""
    return [
        field
        for field in model._meta.concrete_fields
        if field.name not in IGNORED_COLUMNS | ignore
    ]


def load_stored_values(model: type[models.Model], pk: Any) -> ColumnValues | None:
    return model._base_manager.filter(pk=pk).values().first()


def diff_values(
    model: type[models.Model],
    before: ColumnValues | None,
    after: ColumnValues | None,
    *,
    ignore: frozenset[str] = frozenset(),
    names: RelatedNames | None = None,
) -> FieldChanges:
    """Return what differs; for a new or deleted row, all that is not empty.

    `names` has the rows that are referred to, and gets those that are looked up.
    """
    found: FieldChanges = {}
    for field in get_audited_columns(model, ignore=ignore):
        pair = [
            None if values is None else values.get(field.attname)
            for values in (before, after)
        ]
        if pair[0] == pair[1] or (None in (before, after) and not any(pair)):
            continue
        found |= format_column_change(field, pair, {} if names is None else names)
    return found


def format_column_change(
    field: Any, pair: list[Any], names: RelatedNames
) -> FieldChanges:
    """Return one column's change: objects by their keys, rows by their names."""
    if field.remote_field is not None:
        return {field.name: [find_related_name(field, one, names) for one in pair]}
    if all(isinstance(one, dict) for one in pair):
        before, after = (mask_column(field.name, one) for one in pair)
        if isinstance(before, dict) and isinstance(after, dict):
            return {
                f"{field.name}.{key}": [before.get(key), after.get(key)]
                for key in {**before, **after}
                if pair[0].get(key) != pair[1].get(key)
            }
    if not is_secret_column(field.name):
        pair = trim_text_pair(*pair)
    return {field.name: [to_json_value(mask_column(field.name, one)) for one in pair]}


def trim_text_pair(before: Any, after: Any) -> list[Any]:
    """Return two values; of long texts the part in which they differ."""
    if not is_long_text(before, after):
        return [before, after]
    return excerpt_difference(mask_text(before), mask_text(after))


def is_long_text(before: Any, after: Any) -> bool:
    """Whether both are texts, of which at least one is long."""
    texts = isinstance(before, str) and isinstance(after, str)
    return texts and bool(before and after) and max(len(before), len(after)) > LONG_TEXT


def excerpt_difference(before: str, after: str) -> list[Any]:
    """Return the differing part of two texts with what stands around it."""
    head = len(commonprefix([before, after]))
    most = min(len(before), len(after)) - head
    tail = len(commonprefix([before[::-1], after[::-1]])[:most])
    return [
        excerpt_with_context(text, head, len(text) - tail) for text in (before, after)
    ]


def excerpt_with_context(text: str, start: int, end: int) -> str:
    """Return a part of `text` with a little before and after it."""
    start, end = (
        max(start - CONTEXT_CHARACTERS, 0),
        min(end + CONTEXT_CHARACTERS, len(text)),
    )
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def find_related_name(field: Any, pk: Any, names: RelatedNames) -> str | None:
    model: Any = field.related_model
    if pk is None:
        return None
    if (model, pk) not in names:
        row = model._base_manager.filter(pk=pk).first()
        names[model, pk] = f"#{pk}" if row is None else format_related_name(row)
    return names[model, pk]


def format_related_name(row: Any) -> str:
    return f"{row} (#{row.pk})"


def to_json_value(value: Any) -> Any:
    """Return what JSON can hold."""
    if value is None or isinstance(value, str | int | float | bool | list | dict):
        return value
    return str(value) if isinstance(value, Promise) else f"{value}"
