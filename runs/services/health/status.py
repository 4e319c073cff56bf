"""System health: the database accepts writes, the broker responds, workers run."""

import logging
import time
from dataclasses import dataclass
from typing import Any

import redis
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models.functions import Now
from redis.backoff import NoBackoff
from redis.retry import Retry

from runs.models import Worker

CHECK_TIMEOUT_MS = 400
"""Timeout of each check; all of them together stay below a second."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ComponentHealth:
    """Whether one component works, and its response time in milliseconds."""

    ok: bool
    ms: float


@dataclass(frozen=True)
class LiveWorker:
    """One worker process and the seconds since its last heartbeat."""

    age: float
    running: int
    threads: int


@dataclass(frozen=True)
class SystemHealth:
    """All components at one moment."""

    database: ComponentHealth
    broker: ComponentHealth
    workers: tuple[LiveWorker, ...]
    """Live workers only."""

    @property
    def degraded(self) -> list[str]:
        """What is missing although pages work and runs are accepted."""
        missing = [] if self.broker.ok else ["broker"]
        return missing if self.workers else [*missing, "worker"]

    def to_json(self) -> dict[str, Any]:
        """Return the body of `/healthz`; public, so without names or addresses."""
        status = "degraded" if self.degraded else "ok"
        return {
            "status": status if self.database.ok else "down",
            "degraded": self.degraded,
            "database": vars(self.database),
            "broker": vars(self.broker),
            "workers": [
                {"age_seconds": w.age, "running": w.running, "threads": w.threads}
                for w in self.workers
            ],
        }


def check_health() -> SystemHealth:
    """Check every component once; never raise."""
    database = check_database()
    workers = find_live_workers() if database.ok else ()
    return SystemHealth(database=database, broker=check_broker(), workers=workers)


def check_database() -> ComponentHealth:
    """Execute a write that changes nothing."""
    started = time.monotonic()
    try:
        with transaction.atomic():
            if connection.vendor == "postgresql":
                with connection.cursor() as cursor:
                    cursor.execute(f"SET LOCAL statement_timeout = {CHECK_TIMEOUT_MS}")
            # Refused by a read-only server or file, although no row matches.
            Worker.objects.filter(pk=-1).update(running=0)
    except DatabaseError as error:
        logger.warning("The database does not accept writes: %s", error)
        return ComponentHealth(False, milliseconds_since(started))
    return ComponentHealth(True, milliseconds_since(started))


def find_live_workers() -> tuple[LiveWorker, ...]:
    """Return the workers with a heartbeat within one lease, by the database's clock."""
    rows = Worker.objects.filter(stopped_at=None).annotate(now=Now())
    try:
        found = [
            LiveWorker(
                age=round((row.now - row.last_heartbeat).total_seconds(), 1),
                running=row.running,
                threads=row.threads,
            )
            for row in rows[:100]
        ]
    except DatabaseError:
        logger.exception("The workers could not be read")
        return ()
    return tuple(one for one in found if one.age <= settings.LEASE_SECONDS)


def check_broker() -> ComponentHealth:
    """Ping Redis."""
    started = time.monotonic()
    client = redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=CHECK_TIMEOUT_MS / 2000,
        socket_connect_timeout=CHECK_TIMEOUT_MS / 2000,
        retry=Retry(NoBackoff(), 0),
    )
    try:
        with client:
            client.ping()
    except (redis.RedisError, OSError) as error:
        logger.warning("The broker does not respond: %s", error)
        return ComponentHealth(False, milliseconds_since(started))
    return ComponentHealth(True, milliseconds_since(started))


def milliseconds_since(started: float) -> float:
    """Return the milliseconds since `started`, a monotonic time."""
    return round((time.monotonic() - started) * 1000, 1)
