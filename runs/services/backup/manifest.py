"""What a backup contains, as stored in its `manifest.json`."""

import hashlib
from collections.abc import Iterable
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from django.db import connection
from django.db.migrations.loader import MigrationLoader
from pydantic import BaseModel, ConfigDict

from runs.services.errors import BackupError

FORMAT = 1

DatabaseKind = Literal["postgresql", "sqlite"]


class BackupFile(BaseModel):
    """The size and SHA-256 of one file in the archive."""

    model_config = ConfigDict(frozen=True)

    size: int
    sha256: str


class Manifest(BaseModel):
    """Everything that a restore checks before it changes anything."""

    model_config = ConfigDict(frozen=True)

    format: int
    release: str
    created_at: datetime
    database: DatabaseKind
    migrations: list[str]
    """The applied migrations, each as `app.name`."""
    users: int
    runs: int
    key_fingerprints: list[str]
    """Of the encryption keys, the newest first; they do not reveal the keys."""
    files: dict[str, BackupFile]


def get_release() -> str:
    try:
        return version("agentsite")
    except PackageNotFoundError:
        return "0.1.0"


def list_applied_migrations() -> list[str]:
    applied = MigrationLoader(connection).applied_migrations
    return sorted(f"{app}.{name}" for app, name in applied)


def check_release(manifest: Manifest) -> None:
    """Refuse a backup with migrations that this release does not have."""
    loader = MigrationLoader(None)
    known = {f"{app}.{name}" for app, name in loader.disk_migrations}
    for migration in loader.disk_migrations.values():
        known |= {f"{app}.{name}" for app, name in migration.replaces}
    unknown = sorted(set(manifest.migrations) - known)
    if unknown:
        raise BackupError(
            f"The backup is from a newer release ({manifest.release}): this one does "
            f"not have the migration {unknown[-1]}. Update Agentsite, then restore."
        )


def get_key_fingerprints(keys: Iterable[str]) -> list[str]:
    return [hashlib.sha256(key.encode()).hexdigest()[:16] for key in keys]
