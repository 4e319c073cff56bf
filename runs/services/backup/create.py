"""Create a backup: one ZIP archive with the database, the secrets, and a manifest."""

import hashlib
import io
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from runs.models import Run
from runs.services.backup import postgresql, sqlite
from runs.services.backup.keys import list_secret_files
from runs.services.backup.manifest import (
    FORMAT,
    BackupFile,
    Manifest,
    get_key_fingerprints,
    get_release,
    list_applied_migrations,
)
from runs.services.errors import BackupError

MANIFEST_NAME = "manifest.json"
DATABASE_NAME = {"postgresql": "database.dump", "sqlite": "database.sqlite3"}
SECRETS_FOLDER = "secrets"


def create_backup(path: Path, *, with_keys: bool) -> Manifest:
    """Write a backup of the site, which may be running, to a new file."""
    if path.exists():
        raise BackupError(f"{path} already exists. Enter another name.")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    except OSError as error:
        raise BackupError(f"{path} cannot be written: {error.strerror}.") from error
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            manifest = write_archive(file, beside=draft, with_keys=with_keys)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
    except OSError as error:
        raise BackupError(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        draft.unlink(missing_ok=True)
    return manifest


def write_archive(file: IO[bytes], *, beside: Path, with_keys: bool) -> Manifest:
    """Write everything; SQLite needs a copy of the database beside the file."""
    kind: Any = connection.vendor
    files: dict[str, BackupFile] = {}
    is_server = kind == "postgresql"
    with (
        ZipFile(file, "w") as archive,
        postgresql.hold_snapshot() if is_server else nullcontext("") as snapshot,
    ):
        manifest = describe_site(kind)
        if is_server:
            files[DATABASE_NAME[kind]] = add_member(
                archive,
                DATABASE_NAME[kind],
                lambda member: postgresql.dump_database(member, snapshot=snapshot),
                compression=ZIP_STORED,  # the dump is compressed
            )
        else:
            with tempfile.TemporaryDirectory(dir=beside.parent, prefix=".") as folder:
                copy = Path(folder, DATABASE_NAME[kind])
                sqlite.copy_database(copy)
                files[copy.name] = add_file(archive, copy.name, copy)
        for secret in list_secret_files() if with_keys else []:
            name = f"{SECRETS_FOLDER}/{secret.name}"
            files[name] = add_file(archive, name, secret)
        manifest = manifest.model_copy(update={"files": files})
        archive.writestr(MANIFEST_NAME, manifest.model_dump_json(indent=2) + "\n")
    return manifest


def describe_site(kind: Any) -> Manifest:
    return Manifest(
        format=FORMAT,
        release=get_release(),
        created_at=timezone.now(),
        database=kind,
        migrations=list_applied_migrations(),
        users=User.objects.count(),
        runs=Run.objects.count(),
        key_fingerprints=get_key_fingerprints(settings.ENCRYPTION_KEYS),
        files={},
    )


def add_file(archive: ZipFile, name: str, path: Path) -> BackupFile:
    def write(member: IO[bytes]) -> None:
        with path.open("rb") as file:
            shutil.copyfileobj(file, member, 1 << 20)

    return add_member(archive, name, write, compression=ZIP_DEFLATED)


def add_member(
    archive: ZipFile, name: str, write: Callable[[Any], None], *, compression: int
) -> BackupFile:
    """Add what `write` writes; return its size and checksum."""
    info = ZipInfo(name, timezone.now().timetuple()[:6])
    info.compress_type, info.external_attr = compression, 0o600 << 16
    with archive.open(info, "w", force_zip64=True) as member:
        counted = HashingWriter(member)
        write(counted)
    return BackupFile(size=counted.size, sha256=counted.hash.hexdigest())


class HashingWriter(io.RawIOBase):
    """Passes bytes on, and counts and hashes them."""

    def __init__(self, to: IO[bytes]) -> None:
        self.to, self.hash, self.size = to, hashlib.sha256(), 0

    def writable(self) -> bool:
        return True

    def write(self, chunk: Any) -> int:
        self.hash.update(chunk)
        self.size += len(chunk)
        return self.to.write(chunk)
