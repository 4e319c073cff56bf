"""What is deleted when: rules, and the jobs that carry them out."""

from typing import Any

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from runs.models.agents import Agent

MAX_DAYS = 36_500

DAYS_VALIDATORS = [MinValueValidator(1), MaxValueValidator(MAX_DAYS)]


class RetentionRule(models.Model):
    """How long rows of one kind are kept; without a rule, forever."""

    class Kind(models.TextChoices):
        SUCCEEDED_RUNS = "succeeded_runs", _("Succeeded runs")
        FAILED_RUNS = "failed_runs", _("Runs that failed or reached a limit")
        CANCELED_RUNS = "canceled_runs", _("Canceled runs")
        TEST_RUNS = "test_runs", _("Test runs and test chats")
        CONVERSATIONS = "conversations", _("Conversations")
        AUDIT_ENTRIES = "audit_entries", _("Audit log entries")
        SESSIONS = "sessions", _("Expired sessions")
        IDEMPOTENCY_KEYS = "idempotency_keys", _("Idempotency keys")
        WORKERS = "workers", _("Stopped workers")
        DELIVERIES = "deliveries", _("Webhook deliveries")

    kind = models.CharField(max_length=20, choices=Kind, unique=True)
    days = models.PositiveIntegerField(validators=DAYS_VALIDATORS)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.kind


class AgentRetention(models.Model):
    """How long runs and conversations of one agent are kept, whatever the rules say."""

    agent = models.OneToOneField(
        Agent, on_delete=models.CASCADE, related_name="retention"
    )
    days = models.PositiveIntegerField(null=True, validators=DAYS_VALIDATORS)
    """Null: forever."""
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return str(self.agent)


class DeletionJob(models.Model):
    """Deleting many rows in small batches, by one worker or command at a time."""

    class Purpose(models.TextChoices):
        RULES = "rules", _("Retention rules")
        PERSON = "person", _("Erasing a person")

    class Status(models.TextChoices):
        OPEN = "open", _("Running")
        DONE = "done", _("Done")
        STOPPED = "stopped", _("Stopped")

    purpose = models.CharField(max_length=8, choices=Purpose)
    status = models.CharField(max_length=8, choices=Status, default=Status.OPEN)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    """Who requested it; null for the daily job and for commands."""
    is_daily = models.BooleanField(default=False)
    rules = models.JSONField(default=dict)
    """The rules when the job was created; see `runs.services.retention.rules`."""
    person_number = models.BigIntegerField(null=True)
    """Key of the user who is erased."""
    receiver = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    """Who gets what the erased person owned; null: it is deleted."""
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)
    fence = models.PositiveIntegerField(default=0)
    """Raised by every claim; whoever has a lower one has lost the job."""
    stage = models.PositiveSmallIntegerField(default=0)
    """Which table of the purpose's list is next."""
    position = models.BigIntegerField(default=0)
    """The last key of that table that was looked at."""
    counts = models.JSONField(default=dict)
    """Deleted rows by noun, committed with each batch."""
    problem = models.TextField(blank=True, default="")
    """Why the last batch failed, if it did; it is tried again."""

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["purpose"],
                condition=Q(status="open"),
                name="deletion_job_open_once",
            ),
            models.CheckConstraint(
                name="deletion_job_over_has_an_end",
                condition=Q(status="open", ended_at=None)
                | Q(~Q(status="open"), ended_at__isnull=False, lease_until=None),
            ),
        ]

    def __str__(self) -> str:
        return f"deletion job {self.pk}"

    @property
    def total(self) -> int:
        counts: dict[str, Any] = self.counts
        return sum(int(count) for count in counts.values())
