"""Dump and load a PostgreSQL database with `pg_dump`, `pg_restore` and `psql`."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from django.apps import apps
from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.conninfo import make_conninfo

from runs.services.errors import BackupError
from tools.sandbox.environment import get_minimal_environment

CHUNK_BYTES = 1 << 20
BEGIN = b"""BEGIN;
SET LOCAL lock_timeout = '10s';
CREATE EXTENSION IF NOT EXISTS pg_trgm;
"""
NOT_LIBPQ = {"pool", "prepare_threshold", "options"}
"""Options of the settings that are not the client library's, or limit the time."""
UNKNOWN_TO_OLD_SERVERS = b"SET transaction_timeout = 0;\n"
"""A line of the programs of PostgreSQL 17 that older servers refuse."""
DATA_LEFT_OUT = "django_session"
CLOSING_SECONDS = 3.0
"""Seconds that connections of programs that have just ended may still show."""


def dump_database(file: IO[bytes], *, snapshot: str) -> None:
    """Write the tables, as they are in `snapshot`, in the format of `pg_restore`."""
    command = [find_program("pg_dump"), "--format=custom", "--no-owner"]
    command += ["--no-privileges", "--lock-wait-timeout=60s", f"--snapshot={snapshot}"]
    command += [f"--exclude-table-data={DATA_LEFT_OUT}", f"--dbname={build_conninfo()}"]
    command += [f"--table={table}" for table in list_site_tables()]
    with start_program(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        shutil.copyfileobj(process.stdout, file, CHUNK_BYTES)


@contextmanager
def hold_snapshot() -> Iterator[str]:
    """Yield the name of a snapshot, in which the block also reads."""
    if connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"]:
        raise BackupError(
            "DATABASE_URL points at a pooler. Point it at PostgreSQL directly."
        )
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        cursor.execute("SELECT pg_export_snapshot()")
        yield cursor.fetchone()[0]


def load_database(dump: Path, *, statements: list[str]) -> None:
    """Replace all tables by those of the dump and execute the statements, or fail.

    One transaction: it is committed only after all of the dump was read.
    """
    refuse_other_connections()
    old = ", ".join(f'"{table}"' for table in list_site_tables())
    command = [find_program("psql"), "--no-psqlrc", "--quiet", "--output=/dev/null"]
    command += ["--set=ON_ERROR_STOP=1", f"--dbname={build_conninfo()}"]
    with start_program(command, stdin=subprocess.PIPE) as psql:
        assert psql.stdin is not None
        psql.stdin.write(BEGIN)
        if old:
            psql.stdin.write(f"DROP TABLE {old} CASCADE;\n".encode())
        copy_dump(dump, psql.stdin)
        end = [*statements, "COMMIT"]
        psql.stdin.write("".join(f"{each};\n" for each in end).encode())


def copy_dump(dump: Path, to: IO[bytes]) -> None:
    """Write the dump as SQL; fail unless it was complete."""
    command = [find_program("pg_restore"), "--no-owner", "--no-privileges", "--file=-"]
    with start_program([*command, str(dump)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line != UNKNOWN_TO_OLD_SERVERS:
                to.write(line)


def refuse_other_connections() -> None:
    """Refuse while web servers or workers have the database open."""
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # of PostgreSQL only
    own = connection.copy()
    own.settings_dict["OPTIONS"].pop("pool", None)
    deadline = time.monotonic() + CLOSING_SECONDS
    try:
        while others := count_other_connections(own):
            if time.monotonic() > deadline:
                raise BackupError(
                    f"The database is in use (other connections: {others}). Stop all "
                    "web servers and workers, then try again."
                )
            time.sleep(0.1)
    finally:
        own.close()


def count_other_connections(own: BaseDatabaseWrapper) -> int:
    with own.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        (number,) = cursor.fetchone()
    return int(number)


def list_site_tables() -> list[str]:
    """Return the existing tables of our applications, those of migrations included."""
    prefixes = tuple(f"{config.label}_" for config in apps.get_app_configs())
    with connection.cursor() as cursor:
        names = connection.introspection.table_names(cursor)
    return [name for name in names if name.startswith((*prefixes, "django_"))]


@contextmanager
def start_program(
    command: list[str], **streams: Any
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a program for the block; fail with what it printed if it fails."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(  # noqa: S603  # a program of PostgreSQL
            command, stderr=errors, env=build_environment(), **streams
        )
        is_broken = False
        try:
            yield process
        except BrokenPipeError:  # it has ended, and its message says why
            is_broken = True
        except BaseException:
            process.kill()
            raise
        finally:
            if process.stdin is not None:
                close_quietly(process.stdin)
            process.wait()
        if process.returncode or is_broken:
            errors.seek(0)
            message = errors.read(2000).decode(errors="replace").strip()
            raise BackupError(f"{Path(command[0]).name} failed: {message}")


def close_quietly(pipe: IO[bytes]) -> None:
    try:
        pipe.close()
    except BrokenPipeError:
        return


def find_program(name: str) -> str:
    """Return the newest version on this machine."""
    versions = Path("/usr/lib/postgresql").glob(f"*/bin/{name}")
    newest = max(versions, key=lambda path: float(path.parts[-3]), default=None)
    found = str(newest) if newest else shutil.which(name)
    if found is None:
        raise BackupError(
            f"{name} was not found. Install the client programs of PostgreSQL, of the "
            "server's version or newer (Debian, Ubuntu: apt-get install "
            "postgresql-client)."
        )
    return found


def build_conninfo() -> str:
    """Return the options of the connection that are not secret."""
    options = connection.settings_dict["OPTIONS"]
    return make_conninfo(**{k: v for k, v in options.items() if k not in NOT_LIBPQ})


def build_environment() -> dict[str, str]:
    """Return the address and the password, which a command line would reveal."""
    address = {
        f"PG{name}": str(connection.settings_dict[key])
        for name, key in {
            "HOST": "HOST",
            "PORT": "PORT",
            "USER": "USER",
            "PASSWORD": "PASSWORD",
            "DATABASE": "NAME",
        }.items()
        if connection.settings_dict[key]
    }
    return get_minimal_environment() | address
