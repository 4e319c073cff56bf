"""Whether workers are running: the banner of every page."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Min, Q
from django.utils import timezone

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
        """Whether any worker has a recent heartbeat."""
        return self.workers > 0


def get_worker_health() -> WorkerHealth:
    """Return the state of the workers, with two small queries."""
    now = timezone.now()
    limit = now - timedelta(seconds=settings.LEASE_SECONDS)
    newest = Worker.objects.values_list("last_heartbeat", "stopped_at")[:100]
    beats = list(newest)
    counts = Run.objects.filter(
        status__in=[Run.Status.QUEUED, Run.Status.RUNNING]
    ).aggregate(
        running=Count("pk", filter=Q(status=Run.Status.RUNNING)),
        queued=Count("pk", filter=Q(status=Run.Status.QUEUED)),
        oldest=Min("queued_at", filter=Q(status=Run.Status.QUEUED)),
    )
    oldest = counts["oldest"]
    return WorkerHealth(
        workers=sum(beat > limit and stopped is None for beat, stopped in beats),
        running=counts["running"],
        queued=counts["queued"],
        oldest_wait=(now - oldest).total_seconds() if oldest else None,
        last_heartbeat_at=beats[0][0] if beats else None,
    )
