"""Erasing a person from the audit log: the entries stay, the name goes."""

import re
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet

from tools.audit.entry import AuditEntry


def find_person_words(user: User) -> list[str]:
    """Return by what a person can be recognized, the longest first."""
    words = {user.username, user.email, user.get_full_name()}
    return sorted(filter(None, words), key=len, reverse=True)


def clear_entries_about(noun: str, numbers: Any) -> None:
    """Remove names, values and reasons from the entries about some rows."""
    _update(
        AuditEntry.objects.filter(noun=noun, thing_number__in=numbers),
        thing="(erased)",
        changes={},
        note="",
    )


def replace_person_in_entries(
    number: int, words: list[str], *, after: int, limit: int
) -> int | None:
    """Replace a person in the next entries; return the last key, None at the end.

    Entries by and about the person lose reasons and, if about the account, values. In
    others, what equals a name or names the account (`ann (#7)`) is replaced.
    """
    alias = f"erased-{number}"
    rows = list(AuditEntry.objects.filter(pk__gt=after).order_by("pk")[:limit])
    for row in rows:
        is_by = row.by_number == number
        is_about = row.noun == "user" and row.thing_number == number
        found = {
            "by": alias if is_by else row.by,
            "thing": alias if is_about else replace_words(row.thing, words, alias),
            "changes": {} if is_about else replace_words(row.changes, words, alias),
            "note": "" if is_by or is_about else replace_words(row.note, words, alias),
        }
        if any(getattr(row, name) != value for name, value in found.items()):
            _update(AuditEntry.objects.filter(pk=row.pk), **found)
    return rows[-1].pk if rows else None


def replace_words(value: Any, words: list[str], alias: str) -> Any:
    """Return a JSON value without the words, if they stand for a person."""
    if isinstance(value, dict):
        return {key: replace_words(one, words, alias) for key, one in value.items()}
    if isinstance(value, list):
        return [replace_words(one, words, alias) for one in value]
    if not isinstance(value, str):
        return value
    for word in words:
        if value == word:
            return alias
        value = re.sub(rf"(?<!\w){re.escape(word)}(?= \(#\d+\))", alias, value)
        if "@" in word:
            value = value.replace(word, alias)
    return value


def _update(rows: "QuerySet[AuditEntry]", **values: Any) -> None:
    """Update entries, which their own queryset refuses."""
    QuerySet(AuditEntry, rows.query, using=rows.db).update(**values)
