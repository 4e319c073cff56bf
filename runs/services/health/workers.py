"""Whether workers are running: the banner of every page."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, DurationField, ExpressionWrapper, Min, Q
from django.db.models.functions import Now

from runs.models import Run, Worker


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
