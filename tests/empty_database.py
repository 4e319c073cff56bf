"""A database with every table and no rows: migrated once, then copied for each site."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import psycopg

ROOT = Path(__file__).parent.parent
FILE = "db.sqlite3"
"""What the product calls its file in the data folder."""


def copy_empty_sqlite(data: Path) -> None:
    """Put the file into a data folder that has none."""
    data.mkdir(0o700, parents=True, exist_ok=True)
    if not (data / FILE).exists():
        shutil.copy(migrate_sqlite(), data / FILE)


def create_empty_postgresql(server: str, name: str) -> None:
    """Create a database on `server`, an address without a database."""
    create_database(server, name, f'TEMPLATE "{migrate_postgresql(server)}"')


@cache
def migrate_sqlite() -> Path:
    folder = tempfile.mkdtemp(prefix="agentsite-empty-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    migrate(folder, database="")
    return Path(folder, FILE)


@cache
def migrate_postgresql(server: str) -> str:
    name = f"empty_{os.getpid()}"
    create_database(server, name)
    with tempfile.TemporaryDirectory(prefix="agentsite-empty-") as folder:
        migrate(folder, database=f"{server}/{name}")
    return name


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


def create_database(server: str, name: str, options: str = "") -> None:
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" {options}'.encode())
