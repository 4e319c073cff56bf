"""Workers, their signs of life, and the queue."""

from collections import defaultdict
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Min
from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest, page_or_part
from runs.models import QueueSample, Run, Worker
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
    alive = Worker.objects.filter(stopped_at=None, last_heartbeat__gt=silent)
    gone = Worker.objects.filter(last_heartbeat__gt=now - REMEMBERED).exclude(
        pk__in=alive
    )
    queue = Run.objects.filter(status="queued")
    samples = QueueSample.objects.filter(minute__gt=now - SPAN)
    doing = doing_of(request.user, [worker.pk for worker in alive])
    context = {
        "alive": [(worker, doing.get(worker.pk, [])) for worker in alive],
        "chart": queue_chart(samples, now=now),
        "gone": gone[:20],
        "queued": queue.count(),
        "oldest": queue.aggregate(at=Min("queued_at"))["at"],
        "running": Run.objects.filter(status="running").count(),
        "threads": sum(worker.threads for worker in alive),
    }
    return page_or_part(request, "workers/list.html", "workers/_list.html", context)


def doing_of(user: User, workers: list[int]) -> dict[int, list[RunRow]]:
    """Return what each worker does now, as far as one may see it."""
    runs = Run.objects.visible_to(user).filter(status="running", worker__in=workers)
    found: dict[int, list[RunRow]] = defaultdict(list)
    for row in rows_of(with_doing(runs).order_by("pk")[:SHOWN]):
        if row.run.worker_id is not None:
            found[row.run.worker_id].append(row)
    return found
