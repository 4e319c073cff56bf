"""Tools, their revisions and usage, credentials and MCP servers."""

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from tools.accounts.service_account import ServiceAccount
from tools.audit.entry import AuditEntry
from tools.mcp_pin import McpPin
from tools.mcp_sign_in import McpSignIn
from tools.ownership import Owned, OwnedQuerySet
from tools.tool_name import is_tool_name

__all__ = [
    "AuditEntry",
    "Credential",
    "McpPin",
    "McpServer",
    "McpSignIn",
    "ServiceAccount",
    "Tool",
    "ToolQuerySet",
    "ToolRevision",
    "ToolTrial",
    "ToolUsage",
    "UploadedDocument",
]


def validate_tool_name(name: str) -> None:
    if not is_tool_name(name):
        raise ValidationError(
            _(
                "Enter 1 to 64 characters on one line, without brackets, and without "
                "spaces or quotes at the ends."
            )
        )


class Credential(Owned):
    """A write-only secret, sent only to the hosts it is bound to."""

    class Kind(models.TextChoices):
        """How the secret is added to a request."""

        HEADER = "header", _("Header")
        BEARER = "bearer", _("Bearer token")
        BASIC = "basic", _("Basic authentication")
        QUERY = "query", _("Query parameter")

    name = models.CharField(_("Name"), max_length=120)
    kind = models.CharField(_("Kind"), max_length=10, choices=Kind, default=Kind.BEARER)
    field = models.CharField(max_length=120, blank=True)
    """Name of the header or query parameter; the user name for basic authentication."""
    hosts = models.JSONField(default=list)
    """Where the secret may be sent: host names, with HTTPS unless `http://` is said."""
    sealed = models.TextField(blank=True)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        verbose_name = _("credential")
        verbose_name_plural = _("credentials")

    def __str__(self) -> str:
        return self.name


class McpServer(Owned):
    """A server of the Model Context Protocol whose tools can be imported."""

    class Transport(models.TextChoices):
        HTTP = "http", _("Streamable HTTP")
        STDIO = "stdio", _("Command (stdio)")

    name = models.CharField(_("Name"), max_length=120)
    transport = models.CharField(
        _("Transport"), max_length=10, choices=Transport, default=Transport.HTTP
    )
    url = models.CharField(blank=True, max_length=500)
    command = models.CharField(max_length=80, blank=True)
    """Name of a command in the operator's list, never a command line."""
    credential = models.ForeignKey(
        Credential, null=True, blank=True, on_delete=models.PROTECT
    )
    client_id = models.CharField(
        _("Client ID"), max_length=500, blank=True, db_default=""
    )
    """Of a client registered by hand, if the server's sign-in makes none itself."""
    sealed_client_secret = models.TextField(blank=True, db_default="")
    accepts_descriptions = models.BooleanField(
        _("Accept changed descriptions"), default=False, db_default=False
    )
    """Whether a tool of which only the description changed stays enabled."""

    objects = OwnedQuerySet.as_manager()

    class Meta:
        verbose_name = _("MCP server")
        verbose_name_plural = _("MCP servers")

    def __str__(self) -> str:
        return self.name


class ToolQuerySet(OwnedQuerySet["Tool"]):
    """Tools by what a person may do with them."""

    def usable_by(self, user: Any) -> OwnedQuerySet["Tool"]:
        """Return the enabled tools `user` may give to an agent."""
        return super().usable_by(user).filter(enabled=True)


class Tool(Owned):
    """The definition of a tool: data that a kind turns into a call."""

    class Effect(models.TextChoices):
        """What one call may change."""

        READ = "read", _("Read-only")
        IDEMPOTENT = "idempotent", _("Idempotent write (safe to repeat)")
        SIDE_EFFECT = "side_effect", _("Side effect (not safe to repeat)")

    class Approval(models.TextChoices):
        """Which calls a person must approve."""

        NEVER = "never", _("Never")
        SIDE_EFFECTS = "side_effects", _("For side effects")
        ALWAYS = "always", _("Always")

    class OnError(models.TextChoices):
        """What a failed call does to the run."""

        FEED_BACK = "feed_back", _("Return the error to the model")
        END = "end", _("End the run")

    name = models.CharField(max_length=64, validators=[validate_tool_name])
    """Shown to the model; unique within an agent."""
    description = models.TextField(blank=True)
    kind = models.CharField(max_length=20, default="function")
    config = models.JSONField(default=dict, blank=True)
    args_schema = models.JSONField(null=True, blank=True)
    """JSON Schema of the arguments; null for a tool that takes one text."""
    return_direct = models.BooleanField(default=False)
    effect = models.CharField(
        _("Effect"), max_length=12, choices=Effect, default=Effect.SIDE_EFFECT
    )
    approval = models.CharField(
        _("Approval"), max_length=12, choices=Approval, default=Approval.SIDE_EFFECTS
    )
    approvers = models.ForeignKey(
        "auth.Group", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    """The group whose members approve or reject; null for the owner of the run."""
    second_person = models.BooleanField(default=False, db_default=False)
    """Nobody approves a call of their own run, administrators included."""
    approval_hours = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0.01), MaxValueValidator(8760)],
    )
    """How long an approval stays open; null for the site default."""
    at_expiry = models.CharField(
        max_length=6,
        blank=True,
        choices=[
            ("", _("Use the site default")),
            ("reject", _("Reject the call")),
            ("stop", _("Stop the run")),
        ],
        default="",
    )
    """What happens if nobody decides in time."""
    on_error = models.CharField(
        max_length=10, choices=OnError, default=OnError.FEED_BACK
    )
    timeout = models.FloatField(
        default=60.0, validators=[MinValueValidator(0.1), MaxValueValidator(3600)]
    )
    """Of one call, in seconds."""
    retries = models.PositiveSmallIntegerField(
        default=0, validators=[MaxValueValidator(5)]
    )
    calls_per_run = models.PositiveIntegerField(null=True, blank=True)
    output_limit = models.PositiveIntegerField(null=True, blank=True)
    """Bytes of a result shown to the model; null for the limit of the agent."""
    hosts = models.JSONField(default=list, blank=True)
    """Hosts a call may reach; empty for any that the network policy allows."""
    enabled = models.BooleanField(_("Enabled"), default=True)
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
        verbose_name = _("tool")
        verbose_name_plural = _("tools")
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
    """A tool as saved by one change."""

    tool = models.ForeignKey(Tool, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    body = models.JSONField()
    """The whole definition; secrets are references."""
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
    """Calls of a tool in one hour, written in batches by the workers."""

    tool = models.ForeignKey(Tool, on_delete=models.CASCADE, related_name="usage")
    hour = models.DateTimeField()
    calls = models.PositiveIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    ms = models.PositiveBigIntegerField(default=0)
    """Total duration of the calls, in milliseconds."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tool", "hour"], name="tool_usage_once"),
            models.CheckConstraint(
                name="tool_usage_adds_up", condition=Q(failures__lte=F("calls"))
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool_id} {self.hour:%Y-%m-%d %H}"


class UploadedDocument(models.Model):
    """An OpenAPI document from its upload until its operations are selected.

    Its owner alone can read it; `tools.openapi.uploads` deletes it when it expires.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    body = models.BinaryField()
    """The parsed document as compressed JSON."""
    server_url = models.CharField(max_length=2000, blank=True, db_default="")
    """That replaces the server of the document."""
    credential = models.ForeignKey(
        Credential, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    uploaded_at = models.DateTimeField(auto_now_add=True, db_index=True)

    def __str__(self) -> str:
        return f"{self.pk}"


class ToolTrial(models.Model):
    """One call from the page of a tool; only who made it sees it.

    The result is not kept. `tools.services.try_tool` deletes the oldest ones.
    """

    tool = models.ForeignKey(
        "tools.Tool", null=True, on_delete=models.CASCADE, related_name="trials"
    )
    """Null until it is created."""
    draft = models.CharField(max_length=16, blank=True, db_default="")
    """Of which form of a tool that was not created yet."""
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    at = models.DateTimeField(auto_now_add=True)
    arguments = models.JSONField(null=True)
    """Without what could be a secret; null if they were too long to keep."""
    revision = models.PositiveIntegerField()
    """Of the stored definition at that time."""
    is_unsaved = models.BooleanField(default=False, db_default=False)
    """Whether the typed values differed from the stored ones."""
    is_ok = models.BooleanField(default=False, db_default=False)
    http_status = models.PositiveSmallIntegerField(null=True)
    error_line = models.PositiveIntegerField(null=True)
    """The line of the code that failed."""
    is_stopped = models.BooleanField(default=False, db_default=False)
    """Whether the person stopped the call."""
    seconds = models.FloatField(default=0, db_default=0)

    class Meta:
        indexes = [models.Index(fields=["tool", "by", "-at"], name="tool_trials")]

    def __str__(self) -> str:
        return f"trial of {self.tool_id or self.draft}"
