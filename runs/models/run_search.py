"""Index tables by which the list of runs is searched, filtered and sorted."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from runs.models.agents import Agent
from runs.models.runs import Run


class RunSearchRow(models.Model):
    """What lists need of an ended run; a worker writes it after the end."""

    run = models.OneToOneField(
        Run, primary_key=True, on_delete=models.CASCADE, related_name="search_row"
    )
    text = models.TextField()
    """The beginnings of inputs, output and error, in lower case."""
    status = models.CharField(max_length=20, choices=Run.Status)
    ended_at = models.DateTimeField()
    seconds = models.FloatField()
    """From the first claim to the end, without waiting for people."""
    rounds = models.PositiveIntegerField()
    tokens = models.PositiveBigIntegerField()
    cost = models.DecimalField(max_digits=14, decimal_places=6)

    class Meta:
        indexes = [
            models.Index(fields=["seconds", "run"], name="search_row_by_seconds"),
            models.Index(fields=["rounds", "run"], name="search_row_by_rounds"),
            models.Index(fields=["tokens", "run"], name="search_row_by_tokens"),
            models.Index(fields=["cost", "run"], name="search_row_by_cost"),
            models.Index(
                fields=["run"], include=["seconds", "cost"], name="search_row_amounts"
            ),
        ]

    def __str__(self) -> str:
        return f"search row of {self.run_id}"


class DailyRunStats(models.Model):
    """Number of runs per agent, owner, status and UTC day; it outlives the runs."""

    day = models.DateField()
    agent = models.ForeignKey(
        Agent, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    """Null if it was deleted."""
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    """Null if the person was erased."""
    status = models.CharField(max_length=20, choices=Run.Status)
    runs = models.IntegerField(default=0)
    tokens = models.BigIntegerField(default=0)
    cost = models.DecimalField(max_digits=16, decimal_places=6, default=0)
    pruned = models.IntegerField(default=0, db_default=0)
    """How many of the runs have been pruned since; the others still have rows."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["day", "agent", "owner", "status"], name="daily_run_stats_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.runs} {self.status} on {self.day}"


class DailyRunDurations(models.Model):
    """Number of runs per agent, owner, UTC day and duration; it outlives the runs."""

    day = models.DateField()
    agent = models.ForeignKey(
        Agent, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    bucket = models.SmallIntegerField()
    """See `runs.services.search.duration_buckets`."""
    runs = models.IntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["day", "agent", "owner", "bucket"],
                name="daily_run_durations_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.runs} runs on {self.day}"


class RunTool(models.Model):
    """A tool that an ended run called."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="called_tools")
    tool = models.CharField(max_length=200)
    """The name that the model called."""
    has_failed = models.BooleanField(default=False, db_default=False)
    """Whether a call of it failed."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "tool"], name="run_tool_once")
        ]
        indexes = [
            models.Index(fields=["tool", "-run"], name="run_tool_by_tool"),
            models.Index(
                fields=["tool", "-run"],
                name="run_tool_by_failure",
                condition=models.Q(has_failed=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool} in {self.run_id}"


class RunTag(models.Model):
    """A label that people put on a run."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="tags")
    name = models.CharField(max_length=40)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["run", "name"], name="run_tag_once")
        ]
        indexes = [models.Index(fields=["name", "-run"], name="run_tag_by_name")]

    def __str__(self) -> str:
        return self.name


class RunComment(models.Model):
    """What a person wrote about a run."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="comments")
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    text = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True, db_default=Now())

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"comment {self.pk} on run {self.run_id}"


class SavedFilter(models.Model):
    """A saved filter of the list of runs."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_filters"
    )
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=1000)
    """The query string of the list, without its page."""

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "name"], name="saved_filter_once")
        ]

    def __str__(self) -> str:
        return self.name
