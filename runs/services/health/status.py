"""What works here: the database takes writes, the broker answers, workers live."""

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

LONGEST_MS = 400
"""What each of the checks may take; all of them together stay below a second."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Part:
    """Whether one part works, and how fast it answered, in milliseconds."""

    ok: bool
    ms: float


@dataclass(frozen=True)
class WorkerAge:
    """One worker process and the seconds since its last sign of life."""

    age: float
    running: int
    threads: int


@dataclass(frozen=True)
class Health:
    """All parts at one moment."""

    database: Part
    broker: Part
    workers: tuple[WorkerAge, ...]
    """Those that live; a worker that stopped or fell silent is not among them."""

    @property
    def degraded(self) -> list[str]:
        """What is missing though pages work and runs are accepted."""
        missing = [] if self.broker.ok else ["broker"]
        return missing if self.workers else [*missing, "worker"]

    def shape(self) -> dict[str, Any]:
        """Return what `/healthz` says; no names or addresses, it is public."""
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


def check_health() -> Health:
    """Look at every part once; never raise."""
    database = check_database()
    workers = live_workers() if database.ok else ()
    return Health(database=database, broker=check_broker(), workers=workers)


def check_database() -> Part:
    """Take the way of a write that changes nothing."""
    started = time.monotonic()
    try:
        with transaction.atomic():
            if connection.vendor == "postgresql":
                with connection.cursor() as cursor:
                    cursor.execute(f"SET LOCAL statement_timeout = {LONGEST_MS}")
            # Refused by a read-only server or file, though no row is that one.
            Worker.objects.filter(pk=-1).update(running=0)
    except DatabaseError as error:
        logger.warning("The database takes no writes: %s", error)
        return Part(False, milliseconds_since(started))
    return Part(True, milliseconds_since(started))


def live_workers() -> tuple[WorkerAge, ...]:
    """Return the workers with a heartbeat within one lease, by the database's clock."""
    rows = Worker.objects.filter(stopped_at=None).annotate(now=Now())
    try:
        found = [
            WorkerAge(
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


def check_broker() -> Part:
    """Ask Redis for a sign of life."""
    started = time.monotonic()
    client = redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=LONGEST_MS / 2000,
        socket_connect_timeout=LONGEST_MS / 2000,
        retry=Retry(NoBackoff(), 0),
    )
    try:
        with client:
            client.ping()
    except (redis.RedisError, OSError) as error:
        logger.warning("The broker does not answer: %s", error)
        return Part(False, milliseconds_since(started))
    return Part(True, milliseconds_since(started))


def milliseconds_since(started: float) -> float:
    """Return the milliseconds since `started`, a monotonic time."""
    return round((time.monotonic() - started) * 1000, 1)
