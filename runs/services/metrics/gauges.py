"""The values of `/metrics` that are measured at each scrape, with few queries."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import redis
from django.db import connection
from django.db.models import (
    Aggregate,
    Count,
    DurationField,
    ExpressionWrapper,
    F,
    Max,
    Min,
    Sum,
)
from django.db.models.functions import Now

from runs.models import Decision, Delivery, ProviderOutage, Run, Webhook, Worker
from runs.models.runs import UNFINISHED_STATUSES
from runs.redis_streams import connect_redis
from runs.services.health.queue import filter_live_workers, measure_queue_health
from runs.services.health.status import count_free_bytes
from runs.wakeup import list_redis_lists


class Sample(NamedTuple):
    name: str
    value: float
    labels: tuple[str, ...] = ()
    """Values in the order of the gauge's labels."""


class Gauge(NamedTuple):
    """A metric that goes up and down; its name without `agentsite_`."""

    name: str
    help: str
    labels: tuple[str, ...] = ()


GAUGES = (
    Gauge("database_up", "1 if the database could be read."),
    Gauge("database_connections", "Connections to the PostgreSQL server, of anyone."),
    Gauge("database_max_connections", "What the PostgreSQL server allows."),
    Gauge("disk_free_bytes", "Free space where the SQLite database is."),
    Gauge("redis_up", "1 if Redis responds."),
    Gauge("redis_queue_messages", "Wake-up messages that no worker has taken."),
    Gauge("redis_memory_bytes", "Memory that Redis uses."),
    Gauge("redis_max_memory_bytes", "The limit of that memory; 0 for none."),
    Gauge("runs", "Runs that have not ended.", ("status",)),
    Gauge("queue_oldest_wait_seconds", "Wait of the oldest queued run; 0 for none."),
    Gauge("runs_stuck", "Runs that a worker should have taken a minute ago."),
    Gauge("workers", "Workers with a heartbeat within one lease."),
    Gauge("worker_threads", "Runs that these workers can execute at present."),
    Gauge("worker_threads_busy", "Runs that these workers execute."),
    Gauge("worker_model_waits", "Of these, runs that wait for a model."),
    Gauge("worker_abandoned_calls", "Hung calls of tools that hold a thread."),
    Gauge("sweep_age_seconds", "Seconds since any worker last swept."),
    Gauge("decisions_open", "Calls that wait for a person.", ("question",)),
    Gauge("decision_oldest_seconds", "Age of the oldest of these.", ("question",)),
    Gauge("deliveries_waiting", "Webhook deliveries that are not sent yet."),
    Gauge("delivery_oldest_seconds", "Age of the oldest of these; 0 for none."),
    Gauge("webhooks_failing", "Webhooks whose last attempt failed."),
    Gauge(
        "provider_outage_seconds",
        "Seconds since a provider, or one of its models, became unavailable.",
        ("provider", "model"),
    ),
    Gauge("provider_waiting_runs", "Runs that wait for a provider.", ("provider",)),
)


def measure_database() -> Iterator[Sample]:
    """Yield what the database knows; raise its errors."""
    yield Sample("database_up", 1)
    yield from _measure_connections()
    yield from _measure_runs()
    yield from _measure_workers()
    yield from _measure_decisions()
    yield from _measure_deliveries()
    yield from _measure_providers()
    if (free := count_free_bytes()) is not None:
        yield Sample("disk_free_bytes", free)


def _measure_connections() -> Iterator[Sample]:
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), current_setting('max_connections')::int "
            "FROM pg_stat_activity WHERE backend_type = 'client backend'"
        )
        used, most = cursor.fetchone()
    yield Sample("database_connections", used)
    yield Sample("database_max_connections", most)


def _measure_runs() -> Iterator[Sample]:
    rows = Run.objects.filter(status__in=UNFINISHED_STATUSES).order_by()
    found = dict(rows.values_list("status").annotate(Count("pk")))
    for status in UNFINISHED_STATUSES:
        yield Sample("runs", found.get(status, 0), (status,))
    queue = measure_queue_health()
    yield Sample("queue_oldest_wait_seconds", queue.oldest_wait or 0.0)
    yield Sample("runs_stuck", queue.stuck)


def _measure_workers() -> Iterator[Sample]:
    found = (
        filter_live_workers()
        .order_by()
        .aggregate(
            workers=Count("pk"),
            worker_threads=Sum("threads", default=0),
            worker_threads_busy=Sum("running", default=0),
            worker_model_waits=Sum("waiting", default=0),
            worker_abandoned_calls=Sum("abandoned_calls", default=0),
        )
    )
    for name, value in found.items():
        yield Sample(name, value)
    swept = Worker.objects.order_by().aggregate(age=_build_age(Max("last_sweep")))
    if swept["age"] is not None:
        yield Sample("sweep_age_seconds", _count_seconds(swept["age"]))


def _measure_decisions() -> Iterator[Sample]:
    rows = Decision.objects.open().order_by().values_list("question")
    ages = rows.annotate(Count("pk"), age=_build_age(Min("asked_at")))
    found = {question: (number, _count_seconds(age)) for question, number, age in ages}
    for question in Decision.Question.values:
        number, seconds = found.get(question, (0, 0.0))
        yield Sample("decisions_open", number, (question,))
        yield Sample("decision_oldest_seconds", seconds, (question,))


def _measure_deliveries() -> Iterator[Sample]:
    rows = Delivery.objects.filter(status=Delivery.Status.WAITING, webhook__is_on=True)
    found = rows.order_by().aggregate(
        waiting=Count("pk"), age=_build_age(Min("created_at"))
    )
    yield Sample("deliveries_waiting", found["waiting"])
    yield Sample("delivery_oldest_seconds", _count_seconds(found["age"]))
    failing = Webhook.objects.filter(failing_since__isnull=False, is_on=True)
    yield Sample("webhooks_failing", failing.count())


def _measure_providers() -> Iterator[Sample]:
    outages = ProviderOutage.objects.filter(ended_at=None)
    ages = outages.annotate(age=_build_age(F("started_at")))
    for slug, model, age in ages.values_list("provider__slug", "model", "age"):
        labels = (slug, model)
        yield Sample("provider_outage_seconds", _count_seconds(age), labels)
    waiting = Run.objects.waiting_for_provider().order_by()
    for slug, number in waiting.values_list("waiting_provider__slug").annotate(
        Count("pk")
    ):
        yield Sample("provider_waiting_runs", number, (slug,))


def _build_age(since: F | Aggregate) -> "ExpressionWrapper[Any]":
    """Return how long ago a moment was, by the database's clock."""
    return ExpressionWrapper(Now() - since, output_field=DurationField())


def _count_seconds(age: timedelta | None) -> float:
    return 0.0 if age is None else max(age.total_seconds(), 0.0)


def measure_redis() -> Iterator[Sample]:
    """Yield what Redis knows; only that it is away if it does not respond."""
    try:
        with connect_redis() as client:
            memory = client.info("memory")
            waiting = sum(client.llen(each) for each in list_redis_lists())
    except (redis.RedisError, OSError):
        yield Sample("redis_up", 0)
        return
    yield Sample("redis_up", 1)
    yield Sample("redis_queue_messages", waiting)
    yield Sample("redis_memory_bytes", memory["used_memory"])
    yield Sample("redis_max_memory_bytes", memory["maxmemory"])
