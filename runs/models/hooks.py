"""Incoming webhooks: addresses that start runs, and the requests they got."""

from typing import Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from runs.models.agents import Agent
from runs.models.runs import Run
from tools.ownership import filter_own_rows


class HookQuerySet(models.QuerySet["Hook"]):
    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Return the user's own incoming webhooks; all for superusers."""
        return filter_own_rows(self, user)


class Hook(models.Model):
    """An address whose signed requests start runs of an agent."""

    class Scheme(models.TextChoices):
        """How a sender proves who it is."""

        STANDARD = "standard", _("Standard Webhooks")
        GITHUB = "github", "GitHub"
        SLACK = "slack", "Slack"
        STRIPE = "stripe", "Stripe"
        BEARER = "bearer", _("Bearer token")

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="hooks"
    )
    """Owns the runs; they have this user's permissions."""
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="hooks")
    name = models.CharField(max_length=120)
    key = models.CharField(max_length=32, unique=True)
    """The part of the address that nobody can guess; not enough to start a run."""
    scheme = models.CharField(max_length=10, choices=Scheme, default=Scheme.STANDARD)
    inputs = models.JSONField(default=dict)
    """For each variable a text in which `{/pointer}` stands for a value of the body."""
    only_pointer = models.CharField(max_length=300, blank=True)
    """A value of the body that decides whether a run starts; empty for always."""
    only_value = models.CharField(max_length=300, blank=True)
    """What that value must be; several are separated by commas."""
    is_on = models.BooleanField(default=True)
    sealed_secret = models.TextField()
    sealed_old_secret = models.TextField(blank=True)
    old_secret_until = models.DateTimeField(null=True)
    """Until then the previous secret is accepted too."""
    created_at = models.DateTimeField(auto_now_add=True)

    objects = HookQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name


class HookRequest(models.Model):
    """A request that arrived: what became of it, and why. Its body is not stored."""

    class Outcome(models.TextChoices):
        STARTED = "started", _("Run started")
        DUPLICATE = "duplicate", _("Duplicate")
        IGNORED = "ignored", _("Ignored")
        REFUSED = "refused", _("Refused")

    hook = models.ForeignKey(
        Hook, on_delete=models.CASCADE, related_name="requests", db_index=False
    )
    run = models.ForeignKey(
        Run, null=True, on_delete=models.SET_NULL, related_name="hook_requests"
    )
    message_id = models.CharField(max_length=200, blank=True)
    """What the sender calls the message; set only if it started a run."""
    outcome = models.CharField(max_length=10, choices=Outcome)
    reason = models.TextField(blank=True)
    """Why no run was started, as a sentence."""
    size = models.PositiveIntegerField(default=0)
    """Bytes of the body."""
    count = models.PositiveIntegerField(default=1)
    """Equal requests that follow one another within a minute are one row."""
    created_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["hook", "-id"], name="hook_request_by_hook"),
            models.Index(fields=["created_at"], name="hook_request_by_age"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["hook", "message_id"],
                condition=~Q(message_id=""),
                name="hook_request_once",
            )
        ]

    def __str__(self) -> str:
        return f"hook request {self.pk}"
