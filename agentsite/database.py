"""Django's database settings from one URL."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

SQLITE_PRAGMAS = (
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
)

POSTGRES_TIMEOUTS = {
    "statement_timeout": 30_000,
    "lock_timeout": 10_000,
    "idle_in_transaction_session_timeout": 60_000,
}
"""Milliseconds."""

PREPARE_THRESHOLD = 1_000_000
"""Prepares only statements that request it (`tools.sql.statement`), none of the ORM."""

POOL_RECONNECT_SECONDS = 3
"""The pool then starts anew; with more, its attempts get up to minutes apart."""

WEB_POOL_TIMEOUT, WORKER_POOL_TIMEOUT = 3, 30
"""Seconds to wait for a pooled connection: short for web requests."""

WEB_POOL_SIZE, WORKER_POOL_SIZE = 20, 12
"""Connections of a process. A worker cannot use more at once, whatever its threads:
two web servers and four workers stay within PostgreSQL's default of 100."""


class InvalidDatabaseUrl(ValueError):
    """DATABASE_URL cannot be parsed."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"The variable DATABASE_URL is invalid: {why}. Write "
            "postgresql://user:password@host:5432/name or sqlite:///path/to/file."
        )


def parse_database_url(
    url: str, *, data: Path, pool: int, password: str = ""
) -> dict[str, Any]:
    """Return the entry of `DATABASES` for `url`; empty means SQLite in `data`."""
    if not url:
        return sqlite_settings(data / "db.sqlite3")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidDatabaseUrl(str(error)) from error
    name = unquote(parts.path.removeprefix("/"))
    if not name:
        raise InvalidDatabaseUrl("it names no database")
    if parts.scheme == "sqlite":
        return sqlite_settings(Path(name).expanduser().absolute())
    if parts.scheme not in {"postgres", "postgresql"}:
        raise InvalidDatabaseUrl(f"{parts.scheme or 'no scheme'!r} is not supported")
    entry = postgres_settings(name, options=dict(parse_qsl(parts.query)), pool=pool)
    entry["USER"] = unquote(parts.username or "")
    entry["PASSWORD"] = unquote(parts.password or "") or password
    entry["HOST"] = unquote(parts.hostname or "")
    entry["PORT"] = str(port or "")
    return entry


def sqlite_settings(path: Path) -> dict[str, Any]:
    """Return settings for one file; a transaction takes the write lock at once."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": SQLITE_PRAGMAS,
        },
    }


def postgres_settings(
    name: str, *, options: dict[str, str], pool: int
) -> dict[str, Any]:
    """Return settings with a connection pool per process.

    With the option `pgbouncer=true` nothing is left in a session, where another client
    of the pooler would find it, and no startup parameter is sent that it refuses.
    """
    shares_sessions = options.pop("pgbouncer", "") == "true"
    prepares = options.pop("prepare_threshold", "") != "none" and not shares_sessions
    timeouts = " ".join(f"-c {key}={ms}" for key, ms in POSTGRES_TIMEOUTS.items())
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": True,
        "DISABLE_SERVER_SIDE_CURSORS": shares_sessions,
        "OPTIONS": {
            "connect_timeout": 5,
            **({} if shares_sessions else {"options": timeouts}),
            "prepare_threshold": PREPARE_THRESHOLD if prepares else None,
            **options,
            "pool": {
                "min_size": 1,
                "max_size": pool,
                "timeout": WEB_POOL_TIMEOUT,
                "reconnect_timeout": POOL_RECONNECT_SECONDS,
            },
        },
    }


def wait_as_worker(database: dict[str, Any], *, pool: int) -> None:
    """Let a process wait longer for one of its `pool` connections than a web server.

    They are not checked when taken: workers retry their writes.
    """
    database["CONN_HEALTH_CHECKS"] = False
    if "pool" in database["OPTIONS"]:
        database["OPTIONS"]["pool"].update(timeout=WORKER_POOL_TIMEOUT, max_size=pool)
