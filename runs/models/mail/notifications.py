"""E-mail to people: what is sent to whom, and links that answer one approval."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from runs.models.decisions import Decision
from runs.models.runs import Run
from runs.models.schedules import Schedule


class Notification(models.Model):
    """One message to one person, written in the transaction of what it is about."""

    class Kind(models.TextChoices):
        DECISION = "decision", _("Approval needed")
        RUN_FAILED = "run", _("Run failed")
        SCHEDULE = "schedule", _("Schedule failed")
        TEST = "test", _("Test")

    class Status(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        SENT = "sent", _("Sent")
        FAILED = "failed", _("Not sent")
        DROPPED = "dropped", _("No longer needed")

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="notifications",
        db_index=False,
    )
    kind = models.CharField(max_length=10, choices=Kind)
    key = models.CharField(max_length=100)
    """Names the event, so that a person is notified once."""
    run = models.ForeignKey(
        Run, null=True, on_delete=models.CASCADE, related_name="notifications"
    )
    decision = models.ForeignKey(
        Decision, null=True, on_delete=models.CASCADE, related_name="notifications"
    )
    schedule = models.ForeignKey(
        Schedule, null=True, on_delete=models.CASCADE, related_name="notifications"
    )
    status = models.CharField(max_length=8, choices=Status, default=Status.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    available_at = models.DateTimeField(null=True)
    """When the next attempt is due, or its lease ends; null if none follows."""
    error = models.TextField(blank=True)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["available_at"],
                condition=Q(available_at__isnull=False),
                name="notification_due",
            ),
            models.Index(fields=["user", "-id"], name="notification_by_user"),
            models.Index(fields=["created_at"], name="notification_by_age"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="notification_once")
        ]

    def __str__(self) -> str:
        return f"notification {self.pk}"


class ApprovalLink(models.Model):
    """A link by which one person answers one decision, once; its hash is stored."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    decision = models.ForeignKey(
        Decision, on_delete=models.CASCADE, related_name="links"
    )
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"link for decision {self.decision_id}"
