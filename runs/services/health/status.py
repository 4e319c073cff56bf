"""System health: the database and the broker accept writes, workers take the runs."""

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models.functions import Now
from redis.backoff import NoBackoff
from redis.retry import Retry

from runs.models import HealthProbe, ProviderOutage, Run
from runs.services.health.queue import LiveWorker, QueueHealth, measure_queue_health
from runs.store.site_pause import is_site_paused

CHECK_TIMEOUT_MS = 400
"""Timeout of each check; all of them together stay below a second."""
SQLITE_TIMEOUT_MS = 2_000
"""Milliseconds a check waits for another writer of the SQLite file."""
MIN_FREE_BYTES = 100_000_000
"""Free space below which the disk of the SQLite database is reported."""
MAX_AGE_SECONDS = 1.0
"""How long a check of the database is reused: anybody may request one."""

PROBE_KEY = "agentsite:health"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ComponentHealth:
    """Whether one component works, and its response time in milliseconds."""

    ok: bool
    ms: float


@dataclass(frozen=True)
class ProviderOutages:
    """How many providers are unavailable, and how many runs wait for one."""

    unavailable: int
    waiting_runs: int


@dataclass(frozen=True)
class SystemHealth:
    """All components at one moment."""

    database: ComponentHealth
    broker: ComponentHealth
    queue: QueueHealth | None
    """None if the database cannot be read."""
    outages: ProviderOutages
    is_paused: bool = False
    """Whether a restore has not been confirmed, so that nothing is executed."""
    free_bytes: int | None = None
    """Free space for the SQLite database; None for another database server."""

    @property
    def workers(self) -> tuple[LiveWorker, ...]:
        return self.queue.workers if self.queue else ()

    @property
    def degraded(self) -> list[str]:
        """What is missing although pages work and runs are accepted."""
        is_disk_full = self.free_bytes is not None and self.free_bytes < MIN_FREE_BYTES
        problems = {
            "broker": not self.broker.ok,
            "worker": not self.workers,
            "stuck_runs": self.queue is not None and self.queue.stuck > 0,
            "disk": is_disk_full,
            "paused": self.is_paused,
        }
        return [name for name, is_found in problems.items() if is_found]

    def to_json(self) -> dict[str, Any]:
        """Return the body of `/healthz`; public, so without names or addresses."""
        status = "degraded" if self.degraded else "ok"
        disk = None if self.free_bytes is None else {"free_bytes": self.free_bytes}
        return {
            "status": status if self.database.ok else "down",
            "degraded": self.degraded,
            "database": vars(self.database),
            "broker": vars(self.broker),
            "queue": self.queue and self.queue.to_json(),
            "disk": disk,
            "workers": [
                {"age_seconds": w.age, "running": w.running, "threads": w.threads}
                for w in self.workers
            ],
            "providers": vars(self.outages),
        }


def check_health() -> SystemHealth:
    """Check every component once; never raise."""
    database = check_database()
    return SystemHealth(
        database=database,
        broker=check_broker(),
        queue=_measure_queue() if database.ok else None,
        outages=_count_outages() if database.ok else ProviderOutages(0, 0),
        is_paused=database.ok and is_site_paused(),
        free_bytes=count_free_bytes(),
    )


def check_database() -> ComponentHealth:
    """Write a row, or return the result of a check less than a second ago."""
    return database_check.run()


class DatabaseCheck:
    """Writes one row, at most once per `MAX_AGE_SECONDS`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: ComponentHealth | None = None
        self._last_at = 0.0

    def run(self) -> ComponentHealth:
        with self._lock:
            if self._last is None or time.monotonic() - self._last_at > MAX_AGE_SECONDS:
                self._last = _write_probe()
                self._last_at = time.monotonic()
            return self._last

    def forget(self) -> None:
        """Let the next check write again."""
        self._last = None


database_check = DatabaseCheck()


def _write_probe() -> ComponentHealth:
    started = time.monotonic()
    try:
        with _short_timeout():
            HealthProbe.objects.bulk_create(
                [HealthProbe(pk=1, written_at=Now())],
                update_conflicts=True,
                unique_fields=["id"],
                update_fields=["written_at"],
            )
    except (DatabaseError, InterfaceError) as error:
        logger.warning("The database does not accept writes: %s", error)
        return ComponentHealth(False, milliseconds_since(started))
    return ComponentHealth(True, milliseconds_since(started))


@contextmanager
def _short_timeout() -> Iterator[None]:
    """Run the block in a transaction that does not wait long for a lock."""
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {CHECK_TIMEOUT_MS}")
            yield
        return
    connection.ensure_connection()
    usual = int(connection.settings_dict["OPTIONS"]["timeout"] * 1000)
    _set_busy_timeout(SQLITE_TIMEOUT_MS)
    try:
        with transaction.atomic():
            yield
    finally:
        _set_busy_timeout(usual)


def _set_busy_timeout(milliseconds: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA busy_timeout = {milliseconds}")


def _measure_queue() -> QueueHealth | None:
    try:
        return measure_queue_health()
    except (DatabaseError, InterfaceError):
        logger.exception("The queue could not be read")
        return None


def count_free_bytes() -> int | None:
    """Return the free space where the SQLite file is."""
    if connection.vendor != "sqlite":
        return None
    try:
        disk = os.statvfs(Path(connection.settings_dict["NAME"]).parent)
    except OSError as error:
        logger.warning("The free disk space could not be read: %s", error)
        return None
    return disk.f_bavail * disk.f_frsize


def _count_outages() -> ProviderOutages:
    """Count providers whose runs wait; not a fault of this installation."""
    waiting = Run.objects.waiting_for_provider()
    outages = ProviderOutage.objects.filter(ended_at=None)
    try:
        unavailable = outages.order_by().values("provider").distinct()
        return ProviderOutages(unavailable.count(), waiting.count())
    except (DatabaseError, InterfaceError):
        logger.exception("The outages could not be read")
        return ProviderOutages(0, 0)


def check_broker() -> ComponentHealth:
    """Write a key to Redis: a server without free memory answers, but takes nothing."""
    started = time.monotonic()
    try:
        with _connect_broker(settings.REDIS_URL) as client:
            client.set(PROBE_KEY, int(time.time()), ex=3600)
            client.llen(settings.CELERY_TASK_DEFAULT_QUEUE)
    except (redis.RedisError, OSError) as error:
        logger.warning("The broker does not accept messages: %s", error)
        return ComponentHealth(False, milliseconds_since(started))
    return ComponentHealth(True, milliseconds_since(started))


def _connect_broker(url: str) -> "redis.Redis":
    return redis.Redis.from_url(
        url,
        socket_timeout=CHECK_TIMEOUT_MS / 2000,
        socket_connect_timeout=CHECK_TIMEOUT_MS / 2000,
        retry=Retry(NoBackoff(), 0),
    )


def milliseconds_since(started: float) -> float:
    """Return the milliseconds since `started`, a monotonic time."""
    return round((time.monotonic() - started) * 1000, 1)
