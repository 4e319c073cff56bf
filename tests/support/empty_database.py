"""A database with every table and no rows: migrated once, then copied.

The copies are kept in the virtual environment until a migration or a library changes.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psycopg
from psycopg import sql

from tests.support.postgres import find_initdb

ROOT = Path(__file__).parents[2]
KEPT = Path(sys.prefix, "agentsite-empty")
FILE = "db.sqlite3"
"""What the product calls its file in the data folder."""


def copy_empty_sqlite(data: Path) -> None:
    """Put the file into a data folder that has none."""
    data.mkdir(0o700, parents=True, exist_ok=True)
    if not (data / FILE).exists():
        shutil.copy(migrate_sqlite(), data / FILE)


def create_empty_postgresql(server: str, name: str) -> None:
    """Create a database on `server`, an address without a database."""
    template = migrate_postgresql(server)
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        create_database(connection, name, template)


@cache
def migrate_sqlite() -> Path:
    """Return a file with all tables."""
    kept = KEPT / f"{migrations_key()}.sqlite3"
    with locked(kept), tempfile.TemporaryDirectory(dir=KEPT) as folder:
        if not kept.exists():
            migrate(folder, database="")
            Path(folder, FILE).rename(kept)
    return kept


@cache
def migrate_postgresql(server: str) -> str:
    """Return the name of a database on `server` that has all tables."""
    kept = KEPT / f"{migrations_key()}.sql"
    name = f"agentsite_empty_{migrations_key()}"
    with (
        locked(kept),
        psycopg.connect(f"{server}/postgres", autocommit=True) as connection,
    ):
        found = "SELECT 1 FROM pg_database WHERE datname = %s"
        if connection.execute(found, [name]).fetchone() is None:
            create_database(connection, f"{name}_new")
            fill_postgresql(f"{server}/{name}_new", kept)
            rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
            new, final = sql.Identifier(f"{name}_new"), sql.Identifier(name)
            connection.execute(rename.format(new, final))
    return name


def fill_postgresql(url: str, kept: Path) -> None:
    """Create all tables from the dump at `kept`; without one, migrate and write it."""
    initdb = find_initdb()
    assert initdb is not None, "PostgreSQL's programs are not installed."
    if kept.exists():
        psql = [initdb.with_name("psql"), "-qX", "-v", "ON_ERROR_STOP=1", "-1"]
        subprocess.run(
            [*psql, "-d", url, "-f", kept], check=True, stdout=subprocess.DEVNULL
        )
        return
    with tempfile.TemporaryDirectory(dir=KEPT) as folder:
        migrate(folder, database=url)
        dump = Path(folder, "dump")
        command = [initdb.with_name("pg_dump"), "--no-owner", "-f", dump, url]
        subprocess.run(command, check=True)
        dump.rename(kept)


@cache
def migrations_key() -> str:
    """Return what changes with each migration and library."""
    digest = hashlib.sha256((ROOT / "requirements.lock").read_bytes())
    for app in ("runs", "tools"):
        for path in sorted((ROOT / app / "migrations").glob("*.py")):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@contextmanager
def locked(kept: Path) -> Iterator[None]:
    """Let one process at a time make a copy."""
    KEPT.mkdir(exist_ok=True)
    with kept.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def migrate(folder: str, *, database: str) -> None:
    """Run the migrations with the settings of the product."""
    own = {"AGENTSITE_DATA": folder, "DATABASE_URL": database}
    own["DJANGO_SETTINGS_MODULE"] = "agentsite.settings"
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "-v", "0"],
        cwd=ROOT,
        env=os.environ | own,
        check=True,
    )


def create_database(
    connection: psycopg.Connection, name: str, template: str = "template1"
) -> None:
    """Create it anew; one of that name is dropped."""
    names = {"name": sql.Identifier(name), "template": sql.Identifier(template)}
    drop = "DROP DATABASE IF EXISTS {name} WITH (FORCE)"
    for text in (drop, "CREATE DATABASE {name} TEMPLATE {template}"):
        connection.execute(sql.SQL(text).format(**names))
