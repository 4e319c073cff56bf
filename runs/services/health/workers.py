"""Whether workers are running, and whether a run has lost its worker."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, DurationField, ExpressionWrapper, Min, Q
from django.db.models.functions import Now

from runs.models import Run, Worker
from runs.store.database_clock import db_time_from_now


@dataclass(frozen=True)
class WorkerHealth:
    """Live workers, and the runs that wait for them."""

    workers: int
    running: int
    queued: int
    oldest_wait: float | None
    """Seconds the oldest queued run has waited."""
    last_heartbeat_at: datetime | None
    """The newest heartbeat of any worker, dead ones included."""

    @property
    def alive(self) -> bool:
        return self.workers > 0


def has_live_worker() -> bool:
    since = db_time_from_now(-max(settings.LEASE_SECONDS, 10))
    return Worker.objects.filter(stopped_at=None, last_heartbeat__gt=since).exists()


def is_lease_expired(status: str, lease: datetime | None, now: datetime) -> bool:
    """Whether a run is marked as running, but its worker has not renewed the lease.

    `now` is the moment by the database's clock.
    """
    return status == Run.Status.RUNNING and lease is not None and lease < now


def can_be_taken_over(runs: Iterable[Run], now: datetime) -> bool:
    """Whether a worker is there for those of `runs` that have no heartbeat.

    It costs a query only if there is such a run.
    """
    is_lost = any(is_lease_expired(run.status, run.lease_until, now) for run in runs)
    return has_live_worker() if is_lost else True


def get_worker_health() -> WorkerHealth:
    """Return the state of the workers by the database's clock, with two queries."""
    newest = Worker.objects.annotate(now=Now())
    beats = list(newest.values_list("last_heartbeat", "stopped_at", "now")[:100])
    lease = timedelta(seconds=settings.LEASE_SECONDS)
    counts = Run.objects.filter(
        status__in=[Run.Status.QUEUED, Run.Status.RUNNING]
    ).aggregate(
        running=Count("pk", filter=Q(status=Run.Status.RUNNING)),
        queued=Count("pk", filter=Q(status=Run.Status.QUEUED)),
        wait=ExpressionWrapper(
            Now() - Min("queued_at", filter=Q(status=Run.Status.QUEUED)),
            output_field=DurationField(),
        ),
    )
    wait = counts["wait"]
    return WorkerHealth(
        workers=sum(now - beat < lease and not gone for beat, gone, now in beats),
        running=counts["running"],
        queued=counts["queued"],
        oldest_wait=None if wait is None else wait.total_seconds(),
        last_heartbeat_at=beats[0][0] if beats else None,
    )
