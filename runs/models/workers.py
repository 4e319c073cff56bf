"""Worker processes, samples of the queue, counters, and the row of health checks."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class Worker(models.Model):
    """One worker process, from its first heartbeat to its last."""

    name = models.CharField(max_length=120, unique=True)
    """Host, process id and start, so that no two processes ever share it."""
    host = models.CharField(max_length=120)
    pid = models.PositiveIntegerField()
    pool = models.CharField(max_length=20, default="threads")
    queues = models.CharField(max_length=200, blank=True, default="", db_default="")
    """Names of the queues that it serves, separated by commas."""
    threads = models.PositiveIntegerField(default=1)
    """Runs it can execute; more while many of them wait for a model."""
    running = models.PositiveIntegerField(default=0)
    """Runs it is executing."""
    waiting = models.PositiveIntegerField(default=0, db_default=0)
    """Of these, how many wait for a model."""
    abandoned_calls = models.PositiveIntegerField(default=0)
    """Function tool calls past their deadline that still hold a thread."""
    version = models.CharField(max_length=40, blank=True)
    started_at = models.DateTimeField()
    last_heartbeat = models.DateTimeField()
    last_sweep = models.DateTimeField(null=True)
    """When its sweeper last finished, as of the last heartbeat."""
    stopped_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-last_heartbeat"]

    def __str__(self) -> str:
        return self.name

    @property
    def queue_names(self) -> str:
        return self.queues.replace(",", ", ")

    @property
    def serves_some_queues(self) -> bool:
        """Whether other workers are needed for the other queues."""
        return self.queues not in ("", ",".join(settings.QUEUES))


class QueueSample(models.Model):
    """The queue in one minute, written by the first worker that looked."""

    minute = models.DateTimeField(unique=True)
    queued = models.PositiveIntegerField()
    running = models.PositiveIntegerField()
    wait = models.FloatField()
    """Seconds that the oldest queued run had waited."""
    workers = models.PositiveIntegerField()

    class Meta:
        ordering = ["minute"]

    def __str__(self) -> str:
        return f"{self.minute:%Y-%m-%d %H:%M}"


class MetricCounter(models.Model):
    """A number that only grows: what all workers together have counted."""

    name = models.CharField(max_length=60)
    """A metric of `runs.store.metric_counters`, or a part of a histogram."""
    labels = models.CharField(max_length=2600)
    """Names and values as JSON, in alphabetical order."""
    value = models.FloatField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["name", "labels"], name="metric_counter_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.labels}"


class HealthProbe(models.Model):
    """The only row of its table, which shows that the database accepts writes."""

    written_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.written_at:%Y-%m-%d %H:%M:%S}"
