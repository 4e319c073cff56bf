"""Restore a site from a backup; it starts paused (`runs.store.site_pause`)."""

import fcntl
import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from django.conf import settings
from django.db import connection
from pydantic import ValidationError

from runs.models import SiteRestore, Worker
from runs.services.backup import postgresql, sqlite
from runs.services.backup.create import DATABASE_NAME, MANIFEST_NAME, SECRETS_FOLDER
from runs.services.backup.keys import (
    KEYS_FILE,
    SECRET_KEY_FILE,
    add_encryption_keys,
    check_keys,
    replace_secret_key,
)
from runs.services.backup.manifest import FORMAT, BackupFile, Manifest, check_release
from runs.services.errors import BackupError

KEYS_MEMBER = f"{SECRETS_FOLDER}/{KEYS_FILE}"
SECRET_KEY_MEMBER = f"{SECRETS_FOLDER}/{SECRET_KEY_FILE}"


def restore_backup(path: Path, *, replace: bool, with_keys: bool) -> Manifest:
    """Replace the site by the one in the backup.

    Everything is checked before anything is changed; the data is replaced in one
    transaction, which also pauses the site.
    """
    with open_archive(path) as archive, lock_site():
        manifest = read_manifest(archive)
        check_target(manifest, replace=replace)
        if with_keys:
            check_keys(
                manifest.key_fingerprints, has_keys=KEYS_MEMBER in manifest.files
            )
        with tempfile.TemporaryDirectory(prefix="agentsite-restore-") as folder:
            database = extract(archive, manifest, to=Path(folder))
            secrets = {
                name: archive.read(name).decode()
                for name in (KEYS_MEMBER, SECRET_KEY_MEMBER)
                if name in manifest.files and with_keys
            }
            # More keys do no harm if the next step fails; fewer would afterwards.
            if KEYS_MEMBER in secrets and settings.KEYS_ARE_FILES:
                add_encryption_keys(secrets[KEYS_MEMBER])
            load = sqlite if manifest.database == "sqlite" else postgresql
            load.load_database(database, statements=list_statements(manifest))
        if SECRET_KEY_MEMBER in secrets and settings.SECRET_KEY_IS_FILE:
            replace_secret_key(secrets[SECRET_KEY_MEMBER])
    return manifest


@contextmanager
def open_archive(path: Path) -> Iterator[ZipFile]:
    try:
        with ZipFile(path) as archive:
            yield archive
    except BadZipFile as error:
        raise BackupError(
            f"{path} is not a complete backup: {error}. Use another one."
        ) from error
    except OSError as error:
        raise BackupError(f"{path} cannot be read: {error.strerror}.") from error


@contextmanager
def lock_site() -> Iterator[None]:
    """Refuse while `make run` uses the data folder, and prevent its start."""
    with (settings.DATA_DIR / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupError(
                f"Agentsite is running with the data in {settings.DATA_DIR}. Stop it, "
                "then try again."
            ) from None
        yield


def read_manifest(archive: ZipFile) -> Manifest:
    try:
        manifest = Manifest.model_validate_json(archive.read(MANIFEST_NAME))
    except (KeyError, ValidationError) as error:
        raise BackupError(
            f"{archive.filename} is not a backup of Agentsite: it has no valid "
            f"{MANIFEST_NAME}."
        ) from error
    if manifest.format > FORMAT:
        raise BackupError(
            f"The backup is from a newer release ({manifest.release}). Update "
            "Agentsite, then restore."
        )
    return manifest


def check_target(manifest: Manifest, *, replace: bool) -> None:
    """Refuse another kind of database, a newer release, and a site in use."""
    if manifest.database != connection.vendor:
        raise BackupError(
            f"The backup contains a database of the kind {manifest.database}, and "
            f"DATABASE_URL names one of the kind {connection.vendor}. They must be of "
            "the same kind."
        )
    check_release(manifest)
    if not replace and has_data():
        raise BackupError(
            "The database already contains a site. To delete it and restore the "
            "backup, add --replace."
        )


def has_data() -> bool:
    tables = connection.introspection.table_names()
    if "auth_user" not in tables:
        return False
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM auth_user")
        return bool(cursor.fetchone()[0])


def extract(archive: ZipFile, manifest: Manifest, *, to: Path) -> Path:
    """Check all files against the manifest; return the extracted database."""
    name = DATABASE_NAME[manifest.database]
    if name not in manifest.files:
        raise BackupError(f"The backup is damaged: {name} is missing.")
    for member, expected in manifest.files.items():
        target = to / (name if member == name else "checked")
        try:
            with archive.open(member) as source, target.open("wb") as file:
                shutil.copyfileobj(source, file, 1 << 20)
        except KeyError:
            raise BackupError(f"The backup is damaged: {member} is missing.") from None
        if measure_file(target) != expected:
            raise BackupError(
                f"The backup is damaged: {member} does not match its checksum."
            )
    return to / name


def measure_file(path: Path) -> BackupFile:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return BackupFile(size=path.stat().st_size, sha256=digest)


def list_statements(manifest: Manifest) -> list[str]:
    """Return what is executed with the data: end sessions and workers, and pause."""
    restores, workers = (model._meta.db_table for model in (SiteRestore, Worker))
    prefix = "public." if manifest.database == "postgresql" else ""
    backup_at = f"{manifest.created_at:%Y-%m-%d %H:%M:%S.%f}{'+00' if prefix else ''}"
    now = "CURRENT_TIMESTAMP" if prefix else "STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')"
    return [
        f"DELETE FROM {prefix}django_session",  # noqa: S608  # our own names
        f"UPDATE {prefix}{workers} SET stopped_at = {now} "  # noqa: S608
        "WHERE stopped_at IS NULL",
        f"INSERT INTO {prefix}{restores} (backup_at, restored_at, confirmed_by) "  # noqa: S608
        f"VALUES ('{backup_at}', {now}, '')",
    ]
