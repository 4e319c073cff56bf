"""Annotation queues: runs that wait for people's scores, and these scores."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from runs.models.evaluation import Dataset
from runs.models.runs import Run
from tools.ownership import Owned, OwnedQuerySet


class AnnotationQueue(Owned):
    """Runs for people to score, and what they are asked about each.

    Whoever sees the queue can read its runs, whoever owns these.
    """

    name = models.CharField(max_length=120)
    question = models.CharField(max_length=200)
    guidelines = models.TextField(blank=True)
    scale = models.JSONField(default=list)
    """The names of the marks, from 1 on, the worst first."""
    passing_mark = models.PositiveSmallIntegerField(default=4)
    """The lowest mark of a good answer; compared with what evaluators pass."""
    labels = models.JSONField(default=list)
    """What may be wrong with an answer; any number of them can be selected."""
    people_per_run = models.PositiveSmallIntegerField(default=1)
    dataset = models.ForeignKey(
        Dataset, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    """Where corrected answers can be added; null for nowhere."""

    objects = OwnedQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name


class QueuedRun(models.Model):
    queue = models.ForeignKey(
        AnnotationQueue, on_delete=models.CASCADE, related_name="items"
    )
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="queued")
    reason = models.CharField(max_length=200, blank=True)
    """Why a rule added it; empty if a person did."""
    added_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    added_at = models.DateTimeField(auto_now_add=True)
    done_count = models.PositiveSmallIntegerField(default=0)
    """How many people have scored it."""

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["queue", "run"], name="queued_run_once")
        ]
        indexes = [
            models.Index(
                fields=["queue", "done_count", "id"], name="queued_run_by_scores"
            )
        ]

    def __str__(self) -> str:
        return f"run {self.run_id} in queue {self.queue_id}"


class Annotation(models.Model):
    """What one person says of a queued run; first a claim, so that nobody meets."""

    class State(models.TextChoices):
        CLAIMED = "claimed", _("Reserved")
        DONE = "done", _("Scored")
        SKIPPED = "skipped", _("Skipped")

    item = models.ForeignKey(
        QueuedRun, on_delete=models.CASCADE, related_name="annotations"
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    state = models.CharField(max_length=8, choices=State, default=State.CLAIMED)
    claimed_until = models.DateTimeField(null=True)
    """While claimed: until when no other person gets the run in its place."""
    mark = models.PositiveSmallIntegerField(null=True)
    """From 1 on; null until scored."""
    labels = models.JSONField(default=list)
    comment = models.TextField(blank=True)
    correction = models.TextField(blank=True)
    """The answer as it should have been; empty if it was not corrected."""
    example_number = models.PositiveIntegerField(null=True)
    """Of the example of the dataset of the queue that it added or edited.

    It stays after Undo; while the run is not scored, it says nothing of the example.
    """
    example_edit = models.JSONField(null=True)
    """What it did to the example; see `runs.services.annotation.annotate`."""
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["item", "by"], name="annotation_once"),
            models.CheckConstraint(
                name="annotation_done_has_a_mark",
                condition=~Q(state="done") | Q(mark__isnull=False),
            ),
        ]
        indexes = [models.Index(fields=["by", "-changed_at"], name="annotation_latest")]

    def __str__(self) -> str:
        return f"annotation {self.pk}"
