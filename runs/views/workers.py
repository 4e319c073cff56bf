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
from runs.ui.list_search import get_search_text, search_rows
from runs.ui.run_list_rows import RunRow, annotate_current_tool, build_run_rows
from runs.views.charts.queue import CHART_PERIOD, build_queue_chart
from runs.worker.sample_queue import measure_queue

MAX_RUNNING_RUNS = 200
"""Of all workers together."""
GONE_WORKER_PERIOD = timedelta(days=7)
MAX_GONE_WORKERS = 20
SEARCHED = ("name", "host", "queues")


@require_GET
def worker_list(request: HtmxRequest) -> HttpResponse:
    """Show the workers of the last week and the queue; `q` selects workers."""
    q = get_search_text(request)
    now = read_database_time()
    silent = now - timedelta(seconds=settings.LEASE_SECONDS)
    alive = list(Worker.objects.filter(stopped_at=None, last_heartbeat__gt=silent))
    alive_ids = [worker.pk for worker in alive]
    gone = Worker.objects.filter(last_heartbeat__gt=now - GONE_WORKER_PERIOD).exclude(
        pk__in=alive_ids
    )
    waiting = measure_queue(now)
    samples = list(QueueSample.objects.filter(minute__gt=now - CHART_PERIOD))
    running = Run.objects.filter(status="running")
    shown = alive
    if q:
        shown = list(search_rows(Worker.objects.filter(pk__in=alive_ids), q, *SEARCHED))
    found = search_rows(gone, q, *SEARCHED).annotate(left=count_abandoned_runs())
    shown_gone = list(found[:MAX_GONE_WORKERS])
    doing = list_runs_by_worker(request.user, [worker.pk for worker in shown])
    context = {
        "alive": [(worker, doing.get(worker.pk, [])) for worker in shown],
        "alive_count": len(alive),
        "chart": build_queue_chart([*samples, waiting], now=now) if samples else None,
        "gone": shown_gone,
        "q": q,
        "queued": waiting.queued,
        "oldest": timezone.now() - timedelta(seconds=waiting.wait)
        if waiting.queued
        else None,
        "running": waiting.running,
        "lost": running.exclude(worker__in=alive).count(),
        "is_searchable": q or len(alive) > 1 or shown_gone,
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
