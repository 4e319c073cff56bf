"""Workers, their heartbeats, and the queue."""

from collections import defaultdict
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Count, OuterRef, Subquery
from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest, render_page_or_part
from runs.models import QueueSample, Run, Worker
from runs.store.database_clock import read_database_time
from runs.ui.run_list_rows import RunRow, annotate_current_tool, build_run_rows
from runs.views.charts.queue import CHART_PERIOD, build_queue_chart
from runs.worker.sample_queue import measure_queue

MAX_RUNNING_RUNS = 200
"""Of all workers together."""
GONE_WORKER_PERIOD = timedelta(days=7)


@require_GET
def worker_list(request: HtmxRequest) -> HttpResponse:
    """Show the workers of the last week and the queue."""
    now = read_database_time()
    silent = now - timedelta(seconds=settings.LEASE_SECONDS)
    alive = list(Worker.objects.filter(stopped_at=None, last_heartbeat__gt=silent))
    gone = Worker.objects.filter(last_heartbeat__gt=now - GONE_WORKER_PERIOD).exclude(
        pk__in=[worker.pk for worker in alive]
    )
    waiting = measure_queue(now)
    samples = list(QueueSample.objects.filter(minute__gt=now - CHART_PERIOD))
    running = Run.objects.filter(status="running")
    doing = list_runs_by_worker(request.user, [worker.pk for worker in alive])
    context = {
        "alive": [(worker, doing.get(worker.pk, [])) for worker in alive],
        "chart": build_queue_chart([*samples, waiting], now=now) if samples else None,
        "gone": gone.annotate(left=count_abandoned_runs())[:20],
        "queued": waiting.queued,
        "oldest": timezone.now() - timedelta(seconds=waiting.wait)
        if waiting.queued
        else None,
        "running": waiting.running,
        "lost": running.exclude(worker__in=alive).count(),
        "threads": sum(worker.threads for worker in alive),
    }
    return render_page_or_part(
        request, "workers/list.html", "workers/_list.html", context
    )


def count_abandoned_runs() -> Subquery:
    """Count the runs of a worker that no other worker has taken over yet."""
    runs = Run.objects.filter(status="running", worker=OuterRef("pk")).order_by()
    counted = runs.values("worker").annotate(number=Count("pk"))
    return Subquery(counted.values("number"))


def list_runs_by_worker(user: User, workers: list[int]) -> dict[int, list[RunRow]]:
    runs = Run.objects.visible_to(user).filter(status="running", worker__in=workers)
    found: dict[int, list[RunRow]] = defaultdict(list)
    for row in build_run_rows(
        annotate_current_tool(runs).order_by("pk")[:MAX_RUNNING_RUNS]
    ):
        if row.run.worker_id is not None:
            found[row.run.worker_id].append(row)
    return found
