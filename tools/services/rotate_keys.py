"""Sealing every stored secret again, under the newest key."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.apps import apps

from tools.audit.write import write_entry
from tools.secrets import SecretUnreadable, is_sealed_with_newest_key, seal, unseal


@dataclass
class RotationResult:
    """What became of the secrets."""

    resealed: int = 0
    already_newest: int = 0
    unreadable: list[str] = field(default_factory=list)
    """What no key opens, in words."""


def rotate_keys() -> RotationResult:
    """Seal all secrets of all tables with the newest key; twice does no harm.

    A secret that a person types in at the same moment is not overwritten: it is sealed
    with the newest key anyway.
    """
    done = RotationResult()
    for model, column in iter_sealed_columns():
        rows: Any = model._base_manager
        for row in rows.exclude(**{column: ""}).order_by("pk").iterator():
            token = getattr(row, column)
            try:
                secret = unseal(token)
            except SecretUnreadable:
                word = column.removeprefix("sealed").strip("_") or "secret"
                noun = model._meta.verbose_name
                done.unreadable.append(f"{word} of {noun} {row} ({row.pk})")
                continue
            if is_sealed_with_newest_key(token):
                done.already_newest += 1
                continue
            same = rows.filter(pk=row.pk, **{column: token})
            done.resealed += same.update(**{column: seal(secret)})
    if done.resealed:
        message = f"{done.resealed} secrets sealed again"
        write_entry("rotated", "encryption key", "encryption keys", note=message)
    return done


def iter_sealed_columns() -> Iterator[tuple[Any, str]]:
    """Yield each column that holds secrets: its name begins with `sealed`."""
    for model in apps.get_models():
        for column in model._meta.concrete_fields:
            if column.name.startswith("sealed"):
                yield model, column.name
