"""Checks of the database server and of Redis."""

from collections.abc import Iterator
from typing import Any

import redis
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from runs.redis_streams import connect_redis
from runs.services.doctor.finding import Finding
from runs.services.health.direct_connection import (
    find_connection_problem,
    shorten_database_error,
)
from runs.services.health.queue import count_live_workers
from runs.services.health.status import check_broker, check_database
from runs.store.database_clock import read_database_time

MAX_CLOCK_SECONDS = 30.0
"""Difference of clocks after which times in logs are misleading."""
FULL_SHARE = 0.85


def check_database_server() -> Iterator[Finding]:
    """Report whether the database accepts connections and writes, and its version."""
    try:
        version = _read_version()
    except (DatabaseError, InterfaceError) as error:
        reason = find_connection_problem() or shorten_database_error(error)
        yield Finding(
            "database",
            "error",
            f"The database cannot be used: {reason}",
            "Check the variable DATABASE_URL, and that the server runs.",
        )
        return
    missing = find_missing_migrations()
    if missing:
        yield Finding(
            "database",
            "error",
            f"{version}; {len(missing)} migrations are missing, first {missing[0]}.",
            f"Run {settings.MANAGE_COMMAND} prepare.",
        )
    elif not check_database().ok:
        yield Finding(
            "database",
            "error",
            f"{version} accepts no writes.",
            "Check its disk space, and that it is not a read-only replica.",
        )
    else:
        yield Finding("database", "ok", f"{version}; all migrations are applied.")


def _read_version() -> str:
    with connection.cursor() as cursor:
        is_postgresql = connection.vendor == "postgresql"
        name = "PostgreSQL" if is_postgresql else "SQLite"
        cursor.execute(
            "SHOW server_version" if is_postgresql else "SELECT sqlite_version()"
        )
        return f"{name} {cursor.fetchone()[0]}"


def find_missing_migrations() -> list[str]:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [str(migration) for migration, _ in plan]


def check_connections() -> Iterator[Finding]:
    """Report whether PostgreSQL has enough connections for all pools."""
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), current_setting('max_connections')::int - "
            "current_setting('superuser_reserved_connections')::int "
            "FROM pg_stat_activity WHERE backend_type = 'client backend'"
        )
        used, most = cursor.fetchone()
    workers = count_live_workers()
    wanted = count_pool_connections(workers)
    fix = "Lower AGENTSITE_DATABASE_POOL, raise max_connections, or use PgBouncer."
    if used > most * FULL_SHARE:
        yield Finding("connections", "error", f"{used} of {most} are used.", fix)
    elif wanted > most:
        yield Finding(
            "connections",
            "warning",
            f"{workers} workers and a web server may open {wanted} connections; "
            f"PostgreSQL allows {most}.",
            fix,
        )
    else:
        yield Finding("connections", "ok", f"{used} of {most} are used.")


def count_pool_connections(workers: int) -> int:
    """Return how many connections a web server and so many workers may open."""
    return int(settings.WEB_POOL + workers * settings.WORKER_POOL)


def check_clock() -> Iterator[Finding]:
    """Report a clock of this machine that differs from that of the database."""
    seconds = (timezone.now() - read_database_time()).total_seconds()
    if abs(seconds) <= MAX_CLOCK_SECONDS:
        yield Finding("clock", "ok", f"It differs by {abs(seconds):.1f} s.")
        return
    yield Finding(
        "clock",
        "error",
        f"The clock of this machine differs by {seconds:.0f} s from the database's.",
        "Synchronize the clocks of all machines, for example with chrony.",
    )


def check_redis() -> Iterator[Finding]:
    """Report whether Redis takes messages, and what it does when it is full."""
    try:
        with connect_redis() as client:
            about: dict[str, Any] = client.info()
            has_snapshots = _takes_snapshots(client)
    except redis.AuthenticationError as error:
        yield Finding(
            "redis",
            "error",
            f"The password for Redis is missing or wrong: {error}",
            "Check the variables REDIS_PASSWORD_FILE and REDIS_URL.",
        )
        return
    except (redis.RedisError, OSError) as error:
        yield Finding(
            "redis",
            "error",
            f"Redis cannot be used: {error}",
            "Check the variable REDIS_URL, and that the server runs.",
        )
        return
    version = about.get("valkey_version") or about.get("redis_version")
    name = "Valkey" if about.get("valkey_version") else "Redis"
    if not check_broker().ok:
        yield Finding(
            "redis",
            "error",
            f"{name} {version} accepts no writes.",
            "Raise maxmemory, and check its disk space.",
        )
        return
    policy = about.get("maxmemory_policy", "noeviction")
    if about.get("maxmemory") and policy != "noeviction":
        yield Finding(
            "redis",
            "error",
            f"{name} {version} deletes messages when it is full ({policy}).",
            "Set maxmemory-policy to noeviction.",
        )
    elif not about.get("aof_enabled") and not has_snapshots:
        yield Finding(
            "redis",
            "warning",
            f"{name} {version} does not write to its disk: after a restart, runs are "
            "delayed by seconds.",
            "Set appendonly to yes.",
        )
    else:
        yield Finding("redis", "ok", f"{name} {version} accepts writes.")


def _takes_snapshots(client: "redis.Redis") -> bool:
    """Whether it stores snapshots; a service that does not say has its own way."""
    try:
        return bool(client.config_get("save").get("save"))
    except redis.ResponseError:
        return True
