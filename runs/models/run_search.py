"""What the list of runs is searched, filtered and sorted by."""

from django.conf import settings
from django.db import models

from runs.models.agents import Agent
from runs.models.runs import Run


class RunCard(models.Model):
    """What lists ask about a run that is over; a worker files it after the end."""

    run = models.OneToOneField(
        Run, primary_key=True, on_delete=models.CASCADE, related_name="card"
    )
    text = models.TextField()
    """Inputs, output and error in lower case, the beginning of each."""
    status = models.CharField(max_length=20, choices=Run.Status)
    ended_at = models.DateTimeField()
    seconds = models.FloatField()
    """From the first claim to the end; 0 where nobody claimed it."""
    rounds = models.PositiveIntegerField()
    tokens = models.PositiveBigIntegerField()
    cost = models.DecimalField(max_digits=14, decimal_places=6)

    class Meta:
        indexes = [
            models.Index(fields=["seconds", "run"], name="card_by_seconds"),
            models.Index(fields=["rounds", "run"], name="card_by_rounds"),
            models.Index(fields=["tokens", "run"], name="card_by_tokens"),
            models.Index(fields=["cost", "run"], name="card_by_cost"),
        ]

    def __str__(self) -> str:
        return f"card of {self.run_id}"


class RunTally(models.Model):
    """How many runs of an agent and a person ended in one way on one day, in UTC."""

    day = models.DateField()
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="+")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    status = models.CharField(max_length=20, choices=Run.Status)
    runs = models.IntegerField(default=0)
    tokens = models.BigIntegerField(default=0)
    cost = models.DecimalField(max_digits=16, decimal_places=6, default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["day", "agent", "owner", "status"], name="run_tally_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.runs} {self.status} on {self.day}"


class RunTool(models.Model):
    """A run that is over called this tool."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="called")
    tool = models.CharField(max_length=200)
    """The name the model called."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "tool"], name="run_tool_once")
        ]
        indexes = [models.Index(fields=["tool", "-run"], name="run_tool_by_tool")]

    def __str__(self) -> str:
        return f"{self.tool} in {self.run_id}"


class RunTag(models.Model):
    """A word that people put on a run to find it again."""

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


class SavedFilter(models.Model):
    """A list of runs that somebody wants to come back to."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_filters"
    )
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=1000)
    """The query string of the list, without its place in the pages."""

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "name"], name="saved_filter_once")
        ]

    def __str__(self) -> str:
        return self.name
