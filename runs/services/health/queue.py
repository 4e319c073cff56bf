"""The queue and its workers at one moment, by the database's clock."""

from dataclasses import asdict, dataclass
from typing import Any

from django.conf import settings
from django.db.models import Count, DurationField, ExpressionWrapper, Min, Q, QuerySet
from django.db.models.functions import Now

from runs.models import Run, SiteRestore, Worker
from runs.store.database_clock import db_time_from_now
from runs.store.recovery import build_lost_filter

STUCK_SECONDS = 60
"""How long a run may be due without a worker taking it, before it counts as stuck."""


@dataclass(frozen=True)
class LiveWorker:
    """One worker process and the seconds since its last heartbeat."""

    age: float
    running: int
    threads: int


@dataclass(frozen=True)
class QueueHealth:
    """Runs that wait for a worker, run, or are stuck."""

    queued: int
    running: int
    stuck: int
    """Runs that a worker should have taken a minute ago; none while the site is
    paused."""
    oldest_wait: float | None
    """Seconds the oldest queued run has waited; None without one."""
    workers: tuple[LiveWorker, ...]
    """Live workers only."""

    def to_json(self) -> dict[str, Any]:
        fields = asdict(self)
        del fields["workers"]
        return {**fields, "oldest_wait_seconds": fields.pop("oldest_wait")}


def measure_queue_health() -> QueueHealth:
    """Return the state of the queue, with two queries; three if runs seem stuck."""
    workers = find_live_workers()
    has_free_thread = any(one.running < one.threads for one in workers)
    queued = Q(status=Run.Status.QUEUED)
    found = Run.objects.filter(
        status__in=[Run.Status.QUEUED, Run.Status.RUNNING, Run.Status.WAITING]
    ).aggregate(
        queued=Count("pk", filter=queued),
        running=Count("pk", filter=Q(status=Run.Status.RUNNING)),
        stuck=Count("pk", filter=_is_stuck(has_free_thread=has_free_thread)),
        wait=ExpressionWrapper(
            Now() - Min("queued_at", filter=queued), output_field=DurationField()
        ),
    )
    if found["stuck"] and was_site_paused_lately():
        found["stuck"] = 0
    wait = found.pop("wait")
    seconds = None if wait is None else round(max(wait.total_seconds(), 0.0), 1)
    return QueueHealth(**found, oldest_wait=seconds, workers=workers)


def was_site_paused_lately() -> bool:
    """Whether the site is paused, or workers had no time to take all runs since."""
    return SiteRestore.objects.filter(
        Q(confirmed_at=None) | Q(confirmed_at__gt=db_time_from_now(-STUCK_SECONDS))
    ).exists()


def filter_live_workers() -> QuerySet[Worker]:
    """Return the workers with a heartbeat within one lease."""
    return Worker.objects.filter(
        stopped_at=None,
        last_heartbeat__gt=db_time_from_now(-settings.LEASE_SECONDS),
    )


def count_live_workers() -> int:
    return filter_live_workers().count()


def find_live_workers() -> tuple[LiveWorker, ...]:
    rows = filter_live_workers().annotate(now=Now())
    return tuple(
        LiveWorker(
            age=round((row.now - row.last_heartbeat).total_seconds(), 1),
            running=row.running,
            threads=row.threads,
        )
        for row in rows[:1000]
    )


def _is_stuck(*, has_free_thread: bool) -> Q:
    """Match runs that sweeps should have recovered or woken up long ago.

    Queued runs count only while a worker has a free thread: otherwise they wait
    their turn.
    """
    late = db_time_from_now(-STUCK_SECONDS)
    found = build_lost_filter(since=STUCK_SECONDS)
    found |= Q(status=Run.Status.WAITING, available_at__lt=late)
    if has_free_thread:
        found |= Q(status=Run.Status.QUEUED, queued_at__lt=late)
    return found
