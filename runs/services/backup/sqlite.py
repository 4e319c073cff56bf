"""Copy a SQLite database with its online backup API."""

import sqlite3
from contextlib import closing
from pathlib import Path

from django.db import connection

from runs.services.errors import BackupError


def copy_database(copy: Path) -> None:
    """Write a consistent copy of the database, which may be in use."""
    with closing(sqlite3.connect(copy)) as target:
        with closing(sqlite3.connect(find_database())) as source:
            source.backup(target)
        check_integrity(target)
        target.execute("PRAGMA journal_mode = DELETE")
        target.execute("DELETE FROM django_session")
        target.commit()


def load_database(copy: Path, *, statements: list[str]) -> None:
    """Replace the database by the copy, after the statements; in one transaction."""
    with closing(sqlite3.connect(copy)) as source:
        check_integrity(source)
        for statement in statements:
            source.execute(statement)
        source.commit()
        connection.close()
        with closing(sqlite3.connect(find_database(), timeout=10)) as target:
            try:
                source.backup(target)
            except sqlite3.OperationalError as error:
                raise BackupError(
                    f"The database {find_database()} cannot be replaced: {error}. Stop "
                    "Agentsite, then try again."
                ) from error


def check_integrity(database: sqlite3.Connection) -> None:
    try:
        (found,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        found = str(error)
    if found != "ok":
        raise BackupError(f"The database is damaged: {found}.")


def find_database() -> Path:
    return Path(connection.settings_dict["NAME"])
