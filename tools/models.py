"""Tool definitions, their revisions and use, and what they need to reach others."""

from typing import Any

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import F, Q

from tools.audit.entry import AuditEntry
from tools.mcp.pin import McpPin
from tools.ownership import Owned, OwnedQuerySet

__all__ = [
    "AuditEntry",
    "Credential",
    "McpPin",
    "McpServer",
    "Tool",
    "ToolQuerySet",
    "ToolRevision",
    "ToolUsage",
]

tool_name = RegexValidator(
    r"\A[a-zA-Z0-9_-]{1,64}\Z",
    "A tool name is 1 to 64 letters, digits, underscores and hyphens.",
)


class Credential(Owned):
    """A secret for tools; write-only, sent to the hosts it is bound to only."""

    class Kind(models.TextChoices):
        """How the secret is put into a request."""

        HEADER = "header", "Header"
        BEARER = "bearer", "Bearer token"
        BASIC = "basic", "Basic authentication"
        QUERY = "query", "Query parameter"

    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.BEARER)
    field = models.CharField(max_length=120, blank=True)
    """Name of the header or query parameter; the user name for basic."""
    hosts = models.JSONField(default=list)
    """Host names the secret may be sent to."""
    sealed = models.TextField(blank=True)

    objects = OwnedQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name


class McpServer(Owned):
    """A server of the Model Context Protocol whose tools can be taken over."""

    class Transport(models.TextChoices):
        """How the server is reached."""

        HTTP = "http", "Streamable HTTP"
        STDIO = "stdio", "A command the operator listed"

    name = models.CharField(max_length=120)
    transport = models.CharField(
        max_length=10, choices=Transport, default=Transport.HTTP
    )
    url = models.CharField(blank=True, max_length=500)
    command = models.CharField(max_length=80, blank=True)
    """Name of a command in the operator's list, never a command line."""
    credential = models.ForeignKey(
        Credential, null=True, blank=True, on_delete=models.PROTECT
    )

    objects = OwnedQuerySet.as_manager()

    class Meta:
        verbose_name = "MCP server"

    def __str__(self) -> str:
        return self.name


class ToolQuerySet(OwnedQuerySet["Tool"]):
    """Tools by what may be done with them."""

    def usable_by(self, user: Any) -> OwnedQuerySet["Tool"]:
        """Return the enabled tools `user` may give to an agent."""
        return super().usable_by(user).filter(enabled=True)


class Tool(Owned):
    """The definition of a tool: inert data that a kind turns into a call."""

    class Effect(models.TextChoices):
        """What one call may change."""

        READ = "read", "Reads only"
        IDEMPOTENT = "idempotent", "Changes, but twice is as good as once"
        SIDE_EFFECT = "side_effect", "Changes something each time"

    class Approval(models.TextChoices):
        """When a person must say yes."""

        NEVER = "never", "Never"
        SIDE_EFFECTS = "side_effects", "For side effects"
        ALWAYS = "always", "Always"

    class OnError(models.TextChoices):
        """What a failed call does to the run."""

        FEED_BACK = "feed_back", "Tell the model"
        END = "end", "End the run"

    name = models.CharField(max_length=64, validators=[tool_name])
    """What the model calls it; unique within an agent."""
    description = models.TextField(blank=True)
    kind = models.CharField(max_length=20, default="function")
    config = models.JSONField(default=dict, blank=True)
    args_schema = models.JSONField(null=True, blank=True)
    """JSON Schema of the arguments; null for a tool that takes one text."""
    return_direct = models.BooleanField(default=False)
    effect = models.CharField(max_length=12, choices=Effect, default=Effect.SIDE_EFFECT)
    approval = models.CharField(
        max_length=12, choices=Approval, default=Approval.SIDE_EFFECTS
    )
    approvers = models.ForeignKey(
        "auth.Group", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    """Whose members say yes or no; null for the owner of the run."""
    approval_hours = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0.01), MaxValueValidator(8760)],
    )
    """How long a question waits for an answer; null for the operator's setting."""
    at_expiry = models.CharField(
        max_length=6,
        blank=True,
        choices=[
            ("", "As the operator set it"),
            ("reject", "Reject the call and tell the model"),
            ("stop", "Stop the run"),
        ],
        default="",
    )
    """What happens when nobody answers in time."""
    on_error = models.CharField(
        max_length=10, choices=OnError, default=OnError.FEED_BACK
    )
    timeout = models.FloatField(
        default=60.0, validators=[MinValueValidator(0.1), MaxValueValidator(3600)]
    )
    """Seconds one call may take."""
    retries = models.PositiveSmallIntegerField(
        default=0, validators=[MaxValueValidator(5)]
    )
    calls_per_run = models.PositiveIntegerField(null=True, blank=True)
    output_limit = models.PositiveIntegerField(null=True, blank=True)
    """Bytes of a result shown to the model; null for the agent's own limit."""
    hosts = models.JSONField(default=list, blank=True)
    """Hosts a call may reach; empty for no limit besides the guard."""
    enabled = models.BooleanField(default=True)
    revision = models.PositiveIntegerField(default=1)
    credential = models.ForeignKey(
        Credential, null=True, blank=True, on_delete=models.PROTECT
    )
    mcp_server = models.ForeignKey(
        McpServer, null=True, blank=True, on_delete=models.PROTECT
    )
    last_error = models.TextField(blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    objects = ToolQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="tool_effect_known",
                condition=Q(effect__in=["read", "idempotent", "side_effect"]),
            ),
            models.CheckConstraint(
                name="tool_approval_known",
                condition=Q(approval__in=["never", "side_effects", "always"]),
            ),
            models.CheckConstraint(
                name="tool_timeout_positive", condition=Q(timeout__gt=0)
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ToolRevision(models.Model):
    """A tool as it was after one change."""

    tool = models.ForeignKey(Tool, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    body = models.JSONField()
    """All fields of the definition; secrets are references."""
    note = models.CharField(max_length=200, blank=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["tool", "number"], name="tool_revision_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.tool_id}.{self.number}"


class ToolUsage(models.Model):
    """How often a tool was called in one hour, written in batches by the workers."""

    tool = models.ForeignKey(Tool, on_delete=models.CASCADE, related_name="usage")
    hour = models.DateTimeField()
    calls = models.PositiveIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    ms = models.PositiveBigIntegerField(default=0)
    """Milliseconds of all calls together."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tool", "hour"], name="tool_usage_once"),
            models.CheckConstraint(
                name="tool_usage_adds_up", condition=Q(failures__lte=F("calls"))
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool_id} {self.hour:%Y-%m-%d %H}"
