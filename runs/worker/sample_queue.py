"""Sample the length of the queue, one row per minute, for the workers page."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Min, Q

from runs.models import QueueSample, Run, Worker
from runs.store.database_clock import read_database_time

RETENTION = timedelta(days=7)


def sample_queue() -> bool:
    """Write the row of this minute and delete old ones; False if it exists."""
    now = read_database_time()
    minute = now.replace(second=0, microsecond=0)
    if QueueSample.objects.filter(minute=minute).exists():
        return False
    row = measure_queue(now)
    row.minute = minute
    QueueSample.objects.bulk_create([row], ignore_conflicts=True)
    QueueSample.objects.filter(minute__lt=now - RETENTION).delete()
    return True


def measure_queue(now: datetime) -> QueueSample:
    """Return the state of the queue at `now`, as a row that is not stored."""
    silent = now - timedelta(seconds=settings.LEASE_SECONDS)
    found = Run.objects.filter(status__in=["queued", "running"]).aggregate(
        queued=Count("pk", filter=Q(status="queued")),
        running=Count("pk", filter=Q(status="running")),
        oldest=Min("queued_at", filter=Q(status="queued")),
    )
    wait = (now - found["oldest"]).total_seconds() if found["oldest"] else 0.0
    return QueueSample(
        minute=now,
        queued=found["queued"],
        running=found["running"],
        wait=max(wait, 0.0),
        workers=Worker.objects.filter(
            stopped_at=None, last_heartbeat__gt=silent
        ).count(),
    )
