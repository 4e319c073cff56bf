"""The history of a run: model calls with their attempts, and steps."""

from typing import Any

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from runs.models.agents import Spec
from runs.models.runs import Run
from tools.models import Tool
from tools.text.translatable_field import TranslatableTextField


class ModelCall(models.Model):
    """A request that got a reply; its exact prompt is rebuilt from earlier rows."""

    class Purpose(models.TextChoices):
        PLAN = "plan", _("Next action")
        EARLY_STOP = "early_stop", _("Final answer at a limit")
        SUMMARY = "summary", _("Summary of earlier rounds")

    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="calls", db_index=False
    )
    number = models.PositiveIntegerField()
    """Position among the run's model calls, from 0; unique, so `run` is indexed."""
    purpose = models.CharField(max_length=10, choices=Purpose, default=Purpose.PLAN)
    at_index = models.PositiveIntegerField()
    """How many steps the run had at the request."""
    round = models.PositiveIntegerField()
    reply = models.JSONField()
    """`runs.engine.types.Reply` as JSON, with the provider's own message."""
    settings = models.JSONField(default=dict)
    """`ModelSettings` as sent; empty if they are those of the spec."""
    model = models.CharField(max_length=200, blank=True)
    digest = models.CharField(max_length=64)
    """SHA-256 of the request; see `runs.engine.digest`."""
    left_out = models.JSONField(default=list)
    """Rounds that the request left out."""
    input_tokens = models.PositiveIntegerField(default=0)
    cached_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    reasoning_tokens = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(max_digits=14, decimal_places=6, default=0)
    started_at = models.DateTimeField()
    first_token = models.FloatField(null=True)
    """Seconds until the first text; null if nothing was streamed."""
    elapsed = models.FloatField()
    """Seconds of the whole call; a replay gives the engine the same number."""
    copied_from = models.ForeignKey(
        "self", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    is_copied = models.BooleanField(default=False)
    """Reused by a fork, at no cost."""
    is_edited = models.BooleanField(default=False)
    """The reply was written by a person, not the model."""
    spec = models.ForeignKey(
        Spec, null=True, on_delete=models.PROTECT, related_name="+"
    )
    """The spec of a copied call; null for the run's own spec."""
    created_seq = models.PositiveBigIntegerField()
    changed_seq = models.PositiveBigIntegerField()

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="model_call_once")
        ]
        indexes = [models.Index(fields=["run", "changed_seq"], name="call_changed")]

    def __str__(self) -> str:
        return f"model call {self.run_id}.{self.number}"

    @property
    def sent_settings(self) -> dict[str, Any]:
        """`ModelSettings` as sent, as JSON without defaults."""
        if self.settings:
            return dict(self.settings)
        spec = self.run.spec if self.spec is None else self.spec
        return dict(spec.body.get("model") or {})


class ModelAttempt(models.Model):
    """A failed attempt of a model call, committed when it failed."""

    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="attempts", db_index=False
    )
    number = models.PositiveIntegerField()
    """Number of the model call."""
    attempt = models.PositiveIntegerField()
    code = models.CharField(max_length=40)
    message = TranslatableTextField()
    status = models.PositiveSmallIntegerField(null=True)
    """HTTP status, if there was one."""
    was_streamed = models.BooleanField(default=False)
    """Whether draft text had been shown before it failed."""
    partial_text = models.TextField(blank=True, default="", db_default="")
    """What it had streamed, if no attempt followed: pages keep it as the answer."""
    retry_in = models.FloatField(null=True)
    """Seconds until the next attempt; null if there was none."""
    started_at = models.DateTimeField()
    elapsed = models.FloatField()
    created_seq = models.PositiveBigIntegerField()

    class Meta:
        ordering = ["number", "attempt"]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "number", "attempt"], name="model_attempt_once"
            )
        ]

    def __str__(self) -> str:
        return f"attempt {self.run_id}.{self.number}.{self.attempt}"


class AgentStep(models.Model):
    """An action and its outcome; written as an intent before the tool runs."""

    class Status(models.TextChoices):
        PLANNED = "planned", _("Planned")
        AWAITING_APPROVAL = "awaiting_approval", _("Awaiting approval")
        STARTED = "started", _("Running")
        SUCCEEDED = "succeeded", _("Succeeded")
        FAILED = "failed", _("Failed")
        REJECTED = "rejected", _("Rejected")
        UNKNOWN = "unknown", _("Unknown outcome")
        SKIPPED = "skipped", _("Skipped")
        CANCELED = "canceled", _("Canceled")

    class AnsweredBy(models.TextChoices):
        """What has answered a call that was not made."""

        RECORDING = "recording", _("Replayed")
        OTHER_ARGUMENTS = "other_arguments", _("Replayed, other arguments")
        HELD_BACK = "held_back", _("Held back")
        NO_RECORDING = "no_recording", _("Not recorded")

    ANSWERED = ("succeeded", "failed", "rejected", "skipped")
    """Statuses with an observation for the model."""

    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="steps", db_index=False
    )
    index = models.PositiveIntegerField()
    model_call = models.ForeignKey(
        ModelCall, on_delete=models.CASCADE, related_name="steps"
    )
    """The reply that requested it."""
    round = models.PositiveIntegerField()
    tool = models.CharField(max_length=200)
    """The registered name, or the requested one if unknown; `_Exception` (R1)."""
    tool_ref = models.ForeignKey(
        Tool, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    tool_input = models.JSONField(null=True)
    log = models.TextField(blank=True)
    call_id = models.TextField(blank=True)
    """Id of the call in the reply; empty for text formats."""
    effect = models.CharField(max_length=12, blank=True)
    status = models.CharField(max_length=20, choices=Status, default=Status.PLANNED)
    observation = models.TextField(blank=True)
    value = models.JSONField(null=True)
    """The tool's value, if it may become the output."""
    progress = models.CharField(max_length=200, blank=True, default="", db_default="")
    """What the call last reported while it ran."""
    attempts = models.PositiveSmallIntegerField(default=0)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    elapsed = models.FloatField(null=True)
    """Seconds from the start of the round's calls to the end of this one."""
    duration = models.FloatField(null=True)
    """Seconds of this call alone."""
    usage = models.JSONField(null=True)
    """Usage of a sub-agent's run, `{"tokens": …, "cost": …}`; part of the budget."""
    copied_from = models.ForeignKey(
        "self", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    is_copied = models.BooleanField(default=False)
    """Reused by a fork: the observation holds, whatever tools the fork has."""
    is_edited = models.BooleanField(default=False)
    """The observation was written by a person, not the tool."""
    answered_by = models.CharField(
        max_length=16, choices=AnsweredBy, blank=True, default="", db_default=""
    )
    """Empty for a real call; see `ToolMode`."""
    created_seq = models.PositiveBigIntegerField()
    changed_seq = models.PositiveBigIntegerField()

    class Meta:
        ordering = ["index"]
        constraints = [
            models.UniqueConstraint(fields=["run", "index"], name="agent_step_once"),
            models.CheckConstraint(
                name="agent_step_status_known",
                condition=Q(
                    status__in=[
                        "planned",
                        "awaiting_approval",
                        "started",
                        "succeeded",
                        "failed",
                        "rejected",
                        "unknown",
                        "skipped",
                        "canceled",
                    ]
                ),
            ),
        ]
        indexes = [models.Index(fields=["run", "changed_seq"], name="step_changed")]

    def __str__(self) -> str:
        return f"step {self.run_id}.{self.index}"

    @property
    def is_answered(self) -> bool:
        """Whether the model gets an observation for it."""
        return self.status in self.ANSWERED

    @property
    def has_failed(self) -> bool:
        """Whether the observation is an error."""
        return self.status in ("failed", "rejected", "skipped")


class StepMedia(models.Model):
    """An image or sound that a call returned."""

    step = models.ForeignKey(
        AgentStep, on_delete=models.CASCADE, related_name="media", db_index=False
    )
    position = models.PositiveSmallIntegerField()
    """Among those of the result, from 1, as its text says; unique."""
    media_type = models.CharField(max_length=40)
    content = models.BinaryField()

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["step", "position"], name="step_media_once")
        ]

    def __str__(self) -> str:
        return f"media {self.step_id}.{self.position}"

    @property
    def is_image(self) -> bool:
        return self.media_type.startswith("image/")
