"""Following a table: each saved or deleted row of it becomes an entry by itself.

What is changed by `QuerySet.update` raises no signal; such services write their own,
and those that create many rows at once call `record_created_rows`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.db.models.signals import (
    m2m_changed,
    post_delete,
    post_save,
    pre_delete,
    pre_save,
)

from tools.audit.changes import (
    FieldChanges,
    RelatedNames,
    diff_values,
    format_related_name,
    get_audited_columns,
    load_stored_values,
)
from tools.audit.entry import AuditEntry
from tools.audit.write import build_audit_entry, write_entry

BEFORE_ATTRIBUTE = "_audit_before"
"""Where a row carries its stored state from before the save to after it."""

M2M_FIELDS = ("groups", "user_permissions", "permissions")
"""Many-to-many fields that say who may do what."""


ACCESS_FIELDS = frozenset({"owner", "visibility"})
"""Who may do what with a row: always written at once."""

_is_deferred: ContextVar[bool] = ContextVar("audit_later", default=False)


@contextmanager
def defer_audit() -> Iterator[None]:
    """Write only new rows and changed rights; the caller writes the rest."""
    token = _is_deferred.set(True)
    try:
        yield
    finally:
        _is_deferred.reset(token)


def is_audit_deferred() -> bool:
    """Whether a caller writes the changes of the current block."""
    return _is_deferred.get()


@dataclass(frozen=True)
class TrackedModel:
    """How entries of one table are written."""

    noun: str
    made: str = "made"
    """The action of a new row."""
    ignore: frozenset[str] = frozenset()
    name: Callable[[Any], str] = str
    """How a row is called in the log."""


_tracked_models: dict[type[models.Model], TrackedModel] = {}


def track_model(
    model: type[models.Model],
    noun: str,
    *,
    made: str = "made",
    ignore: Collection[str] = (),
    name: Callable[[Any], str] = str,
) -> None:
    """Keep each change of a row of `model`, called `noun` in the log."""
    _tracked_models[model] = TrackedModel(noun, made, frozenset(ignore), name)
    for signal, receiver in (
        (pre_save, remember_before_save),
        (post_save, record_save),
        (pre_delete, remember_before_delete),
        (post_delete, record_delete),
    ):
        signal.connect(receiver, sender=model, dispatch_uid=f"audit {noun} {receiver}")
    for field in model._meta.many_to_many:
        if field.name in M2M_FIELDS:
            m2m_changed.connect(
                record_m2m_change,
                sender=field.remote_field.through,
                dispatch_uid=f"audit {noun} {field.name}",
            )


def remember_before_save(
    sender: type[models.Model], instance: Any, **more: Any
) -> None:
    """Load the stored row before it is overwritten."""
    is_new = instance._state.adding or instance.pk is None
    skip = is_new or not is_save_audited(sender, more)
    setattr(
        instance,
        BEFORE_ATTRIBUTE,
        None if skip else load_stored_values(sender, instance.pk),
    )


def record_save(
    sender: type[models.Model], instance: Any, created: bool, **more: Any
) -> None:
    """Write an entry with what the save changed, if anything."""
    before = instance.__dict__.pop(BEFORE_ATTRIBUTE, None)
    if not is_save_audited(sender, more):
        return
    how = _tracked_models[sender]
    after = load_stored_values(sender, instance.pk)
    names = get_loaded_names(instance)
    changes = diff_values(sender, before, after, ignore=how.ignore, names=names)
    if created or before is None:
        record_row_change(instance, how.made, changes)
        return
    if is_audit_deferred():
        changes = {
            name: pair for name, pair in changes.items() if name in ACCESS_FIELDS
        }
    if changes:
        record_row_change(instance, get_change_action(changes), changes)


def is_save_audited(model: type[models.Model], signal: Mapping[str, Any]) -> bool:
    """Whether a save may change an audited column; a loaded fixture is not audited."""
    if signal["raw"] or signal["update_fields"] is None:
        return not signal["raw"]
    columns = get_audited_columns(model, ignore=_tracked_models[model].ignore)
    return any(
        not signal["update_fields"].isdisjoint({column.name, column.attname})
        for column in columns
    )


def get_loaded_names(instance: models.Model) -> RelatedNames:
    """Return the names of the related rows that are in memory already."""
    related = instance._state.fields_cache.values()
    rows = [row for row in related if isinstance(row, models.Model)]
    return {(type(row), row.pk): format_related_name(row) for row in rows}


def record_created_rows(
    model: type[models.Model], rows: Sequence[models.Model]
) -> None:
    """Write that `rows` were created: `bulk_create` sends no signals."""
    how = _tracked_models[model]
    after = {
        values[model._meta.pk.attname]: values
        for values in model._base_manager.filter(pk__in=[r.pk for r in rows]).values()
    }
    names: RelatedNames = {}
    AuditEntry.objects.bulk_create(
        build_audit_entry(
            how.made,
            how.noun,
            how.name(row),
            number=row.pk,
            changes=diff_values(
                model, None, after[row.pk], ignore=how.ignore, names=names
            ),
        )
        for row in rows
    )


def remember_before_delete(
    sender: type[models.Model], instance: Any, **more: Any
) -> None:
    setattr(instance, BEFORE_ATTRIBUTE, load_stored_values(sender, instance.pk))


def record_delete(sender: type[models.Model], instance: Any, **more: Any) -> None:
    how = _tracked_models[sender]
    before = instance.__dict__.pop(BEFORE_ATTRIBUTE, None)
    changes = diff_values(sender, before, None, ignore=how.ignore)
    record_row_change(instance, "deleted", changes)


def record_row_change(row: models.Model, action: str, changes: FieldChanges) -> None:
    """Write an entry about `row` under the name it goes by."""
    how = _tracked_models[type(row)]
    write_entry(action, how.noun, how.name(row), number=row.pk, changes=changes)


def get_change_action(changes: FieldChanges) -> str:
    """Return the verb for a change of one switch, else "changed"."""
    if set(changes) == {"enabled"}:
        return "enabled" if changes["enabled"][1] else "disabled"
    if set(changes) == {"archived_at"}:
        return "archived" if changes["archived_at"][1] else "brought back"
    return "changed"


def record_m2m_change(
    sender: type[models.Model],
    instance: Any,
    action: str,
    reverse: bool,
    model: type[models.Model],
    pk_set: set[Any] | None,
    **more: Any,
) -> None:
    """Write a change of groups, permissions or members with the names it is about."""
    if type(instance) not in _tracked_models or action not in (
        "post_add",
        "post_remove",
        "pre_clear",
    ):
        return
    if action == "pre_clear":
        rows: Any = model._base_manager.filter(
            **build_clear_filter(sender, instance, model)
        )
    else:
        rows = model._base_manager.filter(pk__in=pk_set or ())
    names = sorted(map(str, rows))
    if names:
        name = "members" if reverse else get_m2m_field_name(sender)
        pair: list[Any] = [None, names] if action == "post_add" else [names, None]
        record_row_change(instance, "changed", {name: pair})


def build_clear_filter(
    through: type[models.Model], instance: models.Model, model: type[models.Model]
) -> dict[str, Any]:
    columns: dict[Any, str] = {
        field.related_model: field.attname
        for field in through._meta.concrete_fields
        if field.remote_field
    }
    rows: Any = through._base_manager
    mine = {columns[type(instance)]: instance.pk}
    return {"pk__in": rows.filter(**mine).values(columns[model])}


def get_m2m_field_name(through: type[models.Model]) -> str:
    """Return the name of a many-to-many field: `user_groups` is about groups."""
    return through._meta.object_name.partition("_")[2] or "list"  # type: ignore[union-attr]  # a model has a name
