"""Writing one entry of the audit log."""

from math import isfinite
from typing import Any

from django.contrib.auth.models import User
from django.db import models

from tools.audit.actor import get_current_actor
from tools.audit.changes import FieldChanges
from tools.audit.entry import AuditEntry
from tools.audit.masking import mask_json_value, truncate_audit_text


def write_entry(
    action: str,
    noun: str,
    thing: models.Model | str,
    *,
    number: int | None = None,
    by: User | None = None,
    changes: FieldChanges | None = None,
    note: str = "",
) -> AuditEntry:
    """Keep that `by`, or else who is acting now, did `action` to `thing`.

    It belongs into the transaction of the change itself.
    """
    entry = build_audit_entry(
        action, noun, thing, number=number, by=by, changes=changes, note=note
    )
    entry.save()
    return entry


def build_audit_entry(
    action: str,
    noun: str,
    thing: models.Model | str,
    *,
    number: int | None = None,
    by: User | None = None,
    changes: FieldChanges | None = None,
    note: str = "",
) -> AuditEntry:
    """Return an entry that is not stored yet.

    Values are masked again here, so that no caller can forget it.
    """
    who = get_current_actor()
    user = by or who.user
    is_row = isinstance(thing, models.Model)
    return AuditEntry(
        by=user.get_username() if user else "",
        by_number=user.pk if user else None,
        way=who.way,
        action=action,
        noun=noun,
        thing=replace_unstorable_values(str(thing))[:200],
        thing_number=thing.pk if number is None and is_row else number,  # type: ignore[union-attr]  # is_row
        changes={
            name: [
                replace_unstorable_values(mask_json_value(one, name=name))
                for one in pair
            ]
            for name, pair in (changes or {}).items()
        },
        note=replace_unstorable_values(truncate_audit_text(note)),
    )


def replace_unstorable_values(value: Any) -> Any:
    """Return a value without the characters and numbers that no database takes."""
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {
            replace_unstorable_values(key): replace_unstorable_values(one)
            for key, one in value.items()
        }
    return (
        [replace_unstorable_values(one) for one in value]
        if isinstance(value, list)
        else value
    )
