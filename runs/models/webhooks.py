"""Webhooks and the deliveries of their events."""

from typing import Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from runs.models.agents import Agent
from runs.models.runs import Run
from tools.ownership import filter_own_rows
from tools.secrets import seal, unseal


class WebhookEvent(models.TextChoices):
    """The events of a run, labeled as its statuses are."""

    NEEDS_APPROVAL = "run.needs_approval", _("Awaiting approval")
    NEEDS_DECISION = "run.needs_decision", _("Awaiting decision")
    SUCCEEDED = "run.succeeded", _("Succeeded")
    LIMIT_REACHED = "run.limit_reached", _("Limit reached")
    FAILED = "run.failed", _("Failed")
    CANCELED = "run.canceled", _("Canceled")


SCORE_EVENT = "run.score_failed"
"""The event of a scoring rule, which names its own webhook."""
TEST_EVENT = "test"
"""The event of a test delivery, which belongs to no run."""


class WebhookQuerySet(models.QuerySet["Webhook"]):
    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Return the user's own webhooks; all for superusers."""
        return filter_own_rows(self, user)


class Webhook(models.Model):
    """An address that is notified of events, and of which."""

    class Shape(models.TextChoices):
        """The format of the request body."""

        EVENT = "event", _("Event as JSON")
        TEXT = "text", _("Text message for a chat")

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="webhooks"
    )
    name = models.CharField(max_length=120)
    host = models.CharField(max_length=300)
    """Scheme, host and port of the address, which may be shown."""
    sealed_url = models.TextField()
    """The whole address. Secret: many chat services accept any request to it."""
    shape = models.CharField(max_length=8, choices=Shape, default=Shape.EVENT)
    events = models.JSONField(default=list)
    """Values of `WebhookEvent`."""
    agent = models.ForeignKey(
        Agent, null=True, blank=True, on_delete=models.CASCADE, related_name="webhooks"
    )
    """The only agent whose runs are reported; null for all."""
    everything = models.BooleanField(default=False)
    """Runs of everyone; applies only while the owner is a superuser."""
    is_on = models.BooleanField(default=True)
    sealed_secret = models.TextField()
    """Signs each request; `whsec_` and 32 bytes in base64."""
    sealed_old_secret = models.TextField(blank=True)
    old_secret_until = models.DateTimeField(null=True)
    """Until then the previous secret signs too."""
    failing_since = models.DateTimeField(null=True)
    """When the first attempt failed since the last success."""
    created_at = models.DateTimeField(auto_now_add=True)

    objects = WebhookQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(
                fields=["id"], condition=Q(everything=True), name="webhook_of_all"
            )
        ]

    def __str__(self) -> str:
        return self.name

    def set_url(self, url: str) -> None:
        """Seal the address, and set `host`."""
        self.sealed_url = seal(url)
        self.host = "/".join(url.split("/")[:3]).partition("?")[0]

    def url(self) -> str:
        """Return the address; raise `SecretUnreadable`."""
        return unseal(self.sealed_url)


class Delivery(models.Model):
    """One event for one webhook, written in the transaction of the change."""

    class Status(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        DELIVERED = "delivered", _("Delivered")
        FAILED = "failed", _("Failed")

    webhook = models.ForeignKey(
        Webhook, on_delete=models.CASCADE, related_name="deliveries", db_index=False
    )
    run = models.ForeignKey(
        Run, null=True, on_delete=models.CASCADE, related_name="deliveries"
    )
    """Null for a test."""
    seq = models.PositiveBigIntegerField(default=0)
    """`Run.seq` of the change that is reported."""
    event = models.CharField(max_length=24)
    """A value of `WebhookEvent`, `SCORE_EVENT` or `TEST_EVENT`."""
    facts = models.JSONField(default=dict)
    """The run at that moment: reason, error, usage."""
    status = models.CharField(
        max_length=10, choices=Status, default=Status.WAITING, db_default=Status.WAITING
    )
    attempts = models.PositiveSmallIntegerField(default=0, db_default=0)
    """Requests begun. A sender may settle a delivery only if this is unchanged."""
    available_at = models.DateTimeField(null=True)
    """When the next attempt is due, while it waits."""
    lease_until = models.DateTimeField(null=True)
    """Until when the attempt in progress holds it."""
    enqueued_at = models.DateTimeField(null=True)
    response_status = models.PositiveSmallIntegerField(null=True)
    """HTTP status of the last response."""
    response_text = models.TextField(default="", db_default="")
    """The beginning of the last response."""
    error = models.TextField(default="", db_default="")
    """Why the last attempt failed, as a sentence."""
    duration_ms = models.PositiveIntegerField(null=True)
    """Duration of the last attempt."""
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["webhook", "available_at"],
                condition=Q(status="waiting"),
                name="delivery_due",
            ),
            models.Index(
                fields=["webhook"],
                condition=Q(lease_until__isnull=False),
                name="delivery_leased",
            ),
            models.Index(fields=["webhook", "-id"], name="delivery_by_webhook"),
            models.Index(fields=["created_at"], name="delivery_by_age"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["webhook", "run", "seq"], name="delivery_once"
            ),
            models.CheckConstraint(
                name="delivery_over_has_an_end",
                condition=Q(status="waiting", ended_at=None, available_at__isnull=False)
                | Q(
                    ~Q(status="waiting"),
                    ended_at__isnull=False,
                    available_at=None,
                    lease_until=None,
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"delivery {self.pk}"
