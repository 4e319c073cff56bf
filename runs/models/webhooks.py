"""Webhooks: who is told what became of runs, and each telling."""

from typing import Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import models
from django.db.models import Q

from runs.models.agents import Agent
from runs.models.runs import Run
from tools.ownership import own_rows
from tools.secrets import seal, unseal


class Event(models.TextChoices):
    """What can be told of a run."""

    NEEDS_APPROVAL = "run.needs_approval", "waits for an approval"
    NEEDS_DECISION = "run.needs_decision", "waits for a decision"
    SUCCEEDED = "run.succeeded", "succeeded"
    STOPPED = "run.stopped", "reached a limit"
    FAILED = "run.failed", "failed"
    CANCELLED = "run.cancelled", "was cancelled"


TEST = "test"
"""The event of a delivery that a person asked for; of no run."""


class WebhookQuerySet(models.QuerySet["Webhook"]):
    """Webhooks by who may see and change them."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Return one's own webhooks; all for superusers."""
        return own_rows(self, user)


class Webhook(models.Model):
    """An address that is told of runs, and of which of them."""

    class Shape(models.TextChoices):
        """What is sent."""

        EVENT = "event", "The event, for a program"
        TEXT = "text", "A line of text, for a chat"

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="webhooks"
    )
    name = models.CharField(max_length=120)
    host = models.CharField(max_length=300)
    """Scheme, host and port of the address, to be shown."""
    sealed_url = models.TextField()
    """The whole address: many a chat takes whatever comes to it, so it is a secret."""
    shape = models.CharField(max_length=8, choices=Shape, default=Shape.EVENT)
    events = models.JSONField(default=list)
    """Values of `Event`."""
    agent = models.ForeignKey(
        Agent, null=True, blank=True, on_delete=models.CASCADE, related_name="webhooks"
    )
    """The only agent whose runs are told; null for all."""
    everything = models.BooleanField(default=False)
    """Runs of everyone; counts only while the owner is a superuser."""
    is_on = models.BooleanField(default=True)
    sealed_secret = models.TextField()
    """Signs each request; `whsec_` and 32 bytes in base64."""
    sealed_old_secret = models.TextField(blank=True)
    old_secret_until = models.DateTimeField(null=True)
    """Until then the secret before the last rotation signs too."""
    failing_since = models.DateTimeField(null=True)
    """When the first of the attempts failed that did since the last one that worked."""
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
        """Seal the address; the scheme, host and port of it may be shown."""
        self.sealed_url = seal(url)
        self.host = "/".join(url.split("/")[:3]).partition("?")[0]

    def url(self) -> str:
        """Return the address; raise `SecretUnreadable`."""
        return unseal(self.sealed_url)


class Delivery(models.Model):
    """One event on its way to one webhook; written with the change it tells of."""

    class Status(models.TextChoices):
        """Where it is."""

        WAITING = "waiting", "Waiting"
        DELIVERED = "delivered", "Delivered"
        FAILED = "failed", "Failed"

    webhook = models.ForeignKey(
        Webhook, on_delete=models.CASCADE, related_name="deliveries", db_index=False
    )
    run = models.ForeignKey(
        Run, null=True, on_delete=models.CASCADE, related_name="deliveries"
    )
    """Null for a test."""
    seq = models.PositiveBigIntegerField(default=0)
    """The run's when it came into the state that is told."""
    event = models.CharField(max_length=24)
    """A value of `Event`, or `TEST`."""
    facts = models.JSONField(default=dict)
    """What the run was at that moment: reason, error, usage."""
    status = models.CharField(
        max_length=10, choices=Status, default=Status.WAITING, db_default=Status.WAITING
    )
    attempts = models.PositiveSmallIntegerField(default=0, db_default=0)
    """Requests begun; a sender writes only while this is what it found."""
    not_before = models.DateTimeField(null=True)
    """When the next attempt is due, while it waits."""
    taken_until = models.DateTimeField(null=True)
    """Until when an attempt under way has it."""
    rung_at = models.DateTimeField(null=True)
    answered = models.PositiveSmallIntegerField(null=True)
    """The HTTP status of the last answer."""
    answer = models.TextField(default="", db_default="")
    """The beginning of the last answer's text."""
    error = models.TextField(default="", db_default="")
    """Why the last attempt failed, in a sentence."""
    duration_ms = models.PositiveIntegerField(null=True)
    """Of the last attempt."""
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["webhook", "not_before"],
                condition=Q(status="waiting"),
                name="delivery_due",
            ),
            models.Index(
                fields=["webhook"],
                condition=Q(taken_until__isnull=False),
                name="delivery_taken",
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
                condition=Q(status="waiting", ended_at=None, not_before__isnull=False)
                | Q(
                    ~Q(status="waiting"),
                    ended_at__isnull=False,
                    not_before=None,
                    taken_until=None,
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"delivery {self.pk}"
