"""Writing one entry of the audit log."""

from math import isfinite
from typing import Any

from django.contrib.auth.models import User
from django.db import models

from tools.audit.actor import actor
from tools.audit.changes import Changes
from tools.audit.entry import AuditEntry
from tools.audit.masks import cut, masked


def write_entry(
    action: str,
    noun: str,
    thing: models.Model | str,
    *,
    number: int | None = None,
    by: User | None = None,
    changes: Changes | None = None,
    note: str = "",
) -> AuditEntry:
    """Keep that `by`, or else who is acting now, did `action` to `thing`.

    It belongs into the transaction of the change itself.
    """
    entry = entry_of(
        action, noun, thing, number=number, by=by, changes=changes, note=note
    )
    entry.save()
    return entry


def entry_of(
    action: str,
    noun: str,
    thing: models.Model | str,
    *,
    number: int | None = None,
    by: User | None = None,
    changes: Changes | None = None,
    note: str = "",
) -> AuditEntry:
    """Return an entry that is not stored yet.

    Values are masked again here, so that no caller can forget it.
    """
    who = actor()
    user = by or who.user
    is_row = isinstance(thing, models.Model)
    return AuditEntry(
        by=user.get_username() if user else "",
        by_number=user.pk if user else None,
        way=who.way,
        action=action,
        noun=noun,
        thing=storable(str(thing))[:200],
        thing_number=thing.pk if number is None and is_row else number,  # type: ignore[union-attr]  # is_row
        changes={
            name: [storable(masked(one, name=name)) for one in pair]
            for name, pair in (changes or {}).items()
        },
        note=storable(cut(note)),
    )


def storable(value: Any) -> Any:
    """Return a value without the characters and numbers that no database takes."""
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {storable(key): storable(one) for key, one in value.items()}
    return [storable(one) for one in value] if isinstance(value, list) else value
