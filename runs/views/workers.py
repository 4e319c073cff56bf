"""Workers, their signs of life, and the queue."""

from collections import defaultdict
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Count, OuterRef, Subquery
from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest, page_or_part
from runs.models import QueueSample, Run, Worker
from runs.services.sample_queue import queue_now
from runs.views.list_rows import RunRow, rows_of, with_doing
from runs.views.queue_chart import SPAN, queue_chart

SHOWN = 200
"""Runs under way on all workers together."""
REMEMBERED = timedelta(days=7)


@require_GET
def worker_list(request: HtmxRequest) -> HttpResponse:
    """Show the workers of the last week and what waits for them."""
    now = timezone.now()
    silent = now - timedelta(seconds=settings.LEASE_SECONDS)
    alive = list(Worker.objects.filter(stopped_at=None, last_heartbeat__gt=silent))
    gone = Worker.objects.filter(last_heartbeat__gt=now - REMEMBERED).exclude(
        pk__in=[worker.pk for worker in alive]
    )
    waiting = queue_now(now)
    samples = list(QueueSample.objects.filter(minute__gt=now - SPAN))
    running = Run.objects.filter(status="running")
    doing = doing_of(request.user, [worker.pk for worker in alive])
    context = {
        "alive": [(worker, doing.get(worker.pk, [])) for worker in alive],
        "chart": queue_chart([*samples, waiting], now=now) if samples else None,
        "gone": gone.annotate(left=left_by_it())[:20],
        "queued": waiting.queued,
        "oldest": now - timedelta(seconds=waiting.wait) if waiting.queued else None,
        "running": waiting.running,
        "lost": running.exclude(worker__in=alive).count(),
        "threads": sum(worker.threads for worker in alive),
    }
    return page_or_part(request, "workers/list.html", "workers/_list.html", context)


def left_by_it() -> Subquery:
    """Count the runs that a worker had and that no other has taken over yet."""
    runs = Run.objects.filter(status="running", worker=OuterRef("pk")).order_by()
    counted = runs.values("worker").annotate(number=Count("pk"))
    return Subquery(counted.values("number"))


def doing_of(user: User, workers: list[int]) -> dict[int, list[RunRow]]:
    """Return what each worker does now, as far as one may see it."""
    runs = Run.objects.visible_to(user).filter(status="running", worker__in=workers)
    found: dict[int, list[RunRow]] = defaultdict(list)
    for row in rows_of(with_doing(runs).order_by("pk")[:SHOWN]):
        if row.run.worker_id is not None:
            found[row.run.worker_id].append(row)
    return found
