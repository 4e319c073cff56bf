"""Following a table: each saved or deleted row of it becomes an entry by itself.

What is changed by `QuerySet.update` raises no signal; such services write their own,
and those that make many rows at once call `keep_made`.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
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

from tools.audit.changes import Changes, Names, differences, stored
from tools.audit.entry import AuditEntry
from tools.audit.write import entry_of, write_entry

BEFORE = "_audit_before"
"""Where a row carries its stored state from before the save to after it."""

LISTS = ("groups", "user_permissions", "permissions")
"""Many-to-many fields that say who may do what."""


RIGHTS = frozenset({"owner", "visibility"})
"""Who may do what with a row: always told at once."""

_later: ContextVar[bool] = ContextVar("audit_later", default=False)


@contextmanager
def told_later() -> Iterator[None]:
    """Write nothing but a new row and changed rights; the caller tells the rest."""
    token = _later.set(True)
    try:
        yield
    finally:
        _later.reset(token)


def is_told_later() -> bool:
    """Whether somebody has promised to tell what is changed now."""
    return _later.get()


@dataclass(frozen=True)
class Followed:
    """How entries of one table are written."""

    noun: str
    made: str = "made"
    """The action of a new row."""
    ignore: frozenset[str] = frozenset()
    name: Callable[[Any], str] = str
    """How a row is called in the log."""


_followed: dict[type[models.Model], Followed] = {}


def follow(
    model: type[models.Model],
    noun: str,
    *,
    made: str = "made",
    ignore: Collection[str] = (),
    name: Callable[[Any], str] = str,
) -> None:
    """Keep each change of a row of `model`, called `noun` in the log."""
    _followed[model] = Followed(noun, made, frozenset(ignore), name)
    for signal, receiver in (
        (pre_save, before_save),
        (post_save, after_save),
        (pre_delete, before_delete),
        (post_delete, after_delete),
    ):
        signal.connect(receiver, sender=model, dispatch_uid=f"audit {noun} {receiver}")
    for field in model._meta.many_to_many:
        if field.name in LISTS:
            m2m_changed.connect(
                list_changed,
                sender=field.remote_field.through,
                dispatch_uid=f"audit {noun} {field.name}",
            )


def before_save(sender: type[models.Model], instance: Any, **more: Any) -> None:
    """Look at the stored row before it is overwritten."""
    is_new = instance._state.adding or instance.pk is None or more["raw"]
    setattr(instance, BEFORE, None if is_new else stored(sender, instance.pk))


def after_save(
    sender: type[models.Model], instance: Any, created: bool, **more: Any
) -> None:
    """Write what the save changed; nothing where nothing did."""
    before = instance.__dict__.pop(BEFORE, None)
    if more["raw"]:
        return
    how = _followed[sender]
    after = stored(sender, instance.pk)
    changes = differences(sender, before, after, ignore=how.ignore)
    if created or before is None:
        keep(instance, how.made, changes)
        return
    if is_told_later():
        changes = {name: pair for name, pair in changes.items() if name in RIGHTS}
    if changes:
        keep(instance, word_of(changes), changes)


def keep_made(model: type[models.Model], rows: Sequence[models.Model]) -> None:
    """Write that `rows` were made, which `bulk_create` tells nobody."""
    how = _followed[model]
    after = {
        values[model._meta.pk.attname]: values
        for values in model._base_manager.filter(pk__in=[r.pk for r in rows]).values()
    }
    names: Names = {}
    AuditEntry.objects.bulk_create(
        entry_of(
            how.made,
            how.noun,
            how.name(row),
            number=row.pk,
            changes=differences(
                model, None, after[row.pk], ignore=how.ignore, names=names
            ),
        )
        for row in rows
    )


def before_delete(sender: type[models.Model], instance: Any, **more: Any) -> None:
    """Keep what will be gone."""
    setattr(instance, BEFORE, stored(sender, instance.pk))


def after_delete(sender: type[models.Model], instance: Any, **more: Any) -> None:
    """Write what was there."""
    how = _followed[sender]
    before = instance.__dict__.pop(BEFORE, None)
    changes = differences(sender, before, None, ignore=how.ignore)
    keep(instance, "deleted", changes)


def keep(row: models.Model, action: str, changes: Changes) -> None:
    """Write an entry about `row` under the name it goes by."""
    how = _followed[type(row)]
    write_entry(action, how.noun, how.name(row), number=row.pk, changes=changes)


def word_of(changes: Changes) -> str:
    """Return the verb for a change of one switch, else "changed"."""
    if set(changes) == {"enabled"}:
        return "enabled" if changes["enabled"][1] else "disabled"
    if set(changes) == {"archived_at"}:
        return "archived" if changes["archived_at"][1] else "brought back"
    return "changed"


def list_changed(
    sender: type[models.Model],
    instance: Any,
    action: str,
    reverse: bool,
    model: type[models.Model],
    pk_set: set[Any] | None,
    **more: Any,
) -> None:
    """Write a change of groups, permissions or members with the names it is about."""
    if type(instance) not in _followed or action not in (
        "post_add",
        "post_remove",
        "pre_clear",
    ):
        return
    if action == "pre_clear":
        rows: Any = model._base_manager.filter(**clearing(sender, instance, model))
    else:
        rows = model._base_manager.filter(pk__in=pk_set or ())
    names = sorted(map(str, rows))
    if names:
        name = "members" if reverse else words_of(sender)
        pair: list[Any] = [None, names] if action == "post_add" else [names, None]
        keep(instance, "changed", {name: pair})


def clearing(
    through: type[models.Model], instance: models.Model, model: type[models.Model]
) -> dict[str, Any]:
    """Return the filter for the rows that a clearing is about."""
    columns: dict[Any, str] = {
        field.related_model: field.attname
        for field in through._meta.concrete_fields
        if field.remote_field
    }
    rows: Any = through._base_manager
    mine = {columns[type(instance)]: instance.pk}
    return {"pk__in": rows.filter(**mine).values(columns[model])}


def words_of(through: type[models.Model]) -> str:
    """Return the name of a many-to-many field: `user_groups` is about groups."""
    return through._meta.object_name.partition("_")[2] or "list"  # type: ignore[union-attr]  # a model has a name
