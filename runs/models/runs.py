"""A run: its state, lease and fence, and what a person did to it."""

from typing import Any, Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import models
from django.db.models import Q

from runs.engine.stopping import is_sentence
from runs.models.agents import Agent, AgentVersion, Spec
from runs.models.schedules import Schedule
from runs.models.workers import Worker
from tools.ownership import own_rows

OVER = ["succeeded", "stopped", "failed", "cancelled"]
UNFINISHED = ["queued", "running", "awaiting_approval", "awaiting_decision", "waiting"]


class Conversation(models.Model):
    """Runs of one agent that follow one another; earlier turns reach the model."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="conversations"
    )
    agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="conversations"
    )
    title = models.CharField(max_length=200, blank=True)
    is_test = models.BooleanField(default=False)
    """A test chat of the agent's page: runs of the draft."""
    branch_of = models.ForeignKey(
        "self", null=True, on_delete=models.SET_NULL, related_name="branches"
    )
    """Where its first turns are, those before `branch_at`."""
    branch_at = models.PositiveBigIntegerField(null=True, db_index=True)
    """Number of the run in whose place this conversation goes on otherwise."""
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.title or f"conversation {self.pk}"


class RunQuerySet(models.QuerySet["Run"]):
    """Runs by who may see them."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Return one's own runs; all for superusers."""
        return own_rows(self, user)


class Run(models.Model):
    """One execution of an agent, durable from its first row to its last."""

    class Status(models.TextChoices):
        """Where a run is; `runs.services.move` is the only writer."""

        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        AWAITING_APPROVAL = "awaiting_approval", "Needs approval"
        AWAITING_DECISION = "awaiting_decision", "Needs a decision"
        WAITING = "waiting", "Waiting"
        SUCCEEDED = "succeeded", "Succeeded"
        STOPPED = "stopped", "Stopped"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    class StopReason(models.TextChoices):
        """Which limit ended a stopped run."""

        ITERATIONS = "iterations", "rounds"
        TIME = "time", "working time"
        TOKENS = "tokens", "tokens"
        COST = "cost", "cost"
        LOOP = "loop", "a loop without progress"
        EXPIRED = "expired", "an approval that expired"

    class Source(models.TextChoices):
        """How a run was started."""

        PAGE = "page", "on the page"
        API = "api", "by the API"
        SCHEDULE = "schedule", "by a schedule"
        PARENT = "parent", "by another run"

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="runs"
    )
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="runs")
    version = models.ForeignKey(
        AgentVersion, null=True, on_delete=models.PROTECT, related_name="runs"
    )
    """Null for a run of the draft."""
    spec = models.ForeignKey(Spec, on_delete=models.PROTECT, related_name="runs")
    conversation = models.ForeignKey(
        Conversation, null=True, on_delete=models.PROTECT, related_name="runs"
    )
    parent_step = models.OneToOneField(
        "runs.AgentStep", null=True, on_delete=models.CASCADE, related_name="child"
    )
    """The step of another run that waits for this one."""
    forked_from = models.ForeignKey(
        "self", null=True, on_delete=models.SET_NULL, related_name="forks"
    )
    fork_index = models.PositiveIntegerField(null=True)
    """How many of its steps are copies; null for a run that is no fork."""
    fork_row = models.PositiveIntegerField(null=True)
    """The number of the row, in both runs, at which they part."""
    fork_edits = models.JSONField(default=list)
    """What was changed there: prompt, model, tools, limits, reply, observation."""
    earlier_inputs = models.JSONField(null=True)
    """With what the reused calls were asked, where a fork has other inputs.

    `[[number, inputs], …]`: the first whose number is above a call's own counts.
    """
    turns_seen_at = models.DateTimeField(null=True)
    """When the earlier turns were first read; null for this run's own start."""
    source = models.CharField(max_length=8, choices=Source, default=Source.PAGE)
    schedule = models.ForeignKey(
        Schedule,
        null=True,
        on_delete=models.SET_NULL,
        related_name="runs",
        db_index=False,
    )
    """Which one started it; null also where that is deleted."""
    is_test = models.BooleanField(default=False)
    title = models.CharField(max_length=200, blank=True)
    """The first line of the question, for lists."""
    inputs = models.JSONField(default=dict)
    turn_ids = models.JSONField(default=list)
    """Earlier runs of the conversation that the model gets to see, frozen at start."""

    status = models.CharField(max_length=20, choices=Status, default=Status.QUEUED)
    stop_reason = models.CharField(max_length=12, choices=StopReason, blank=True)
    error_code = models.CharField(max_length=40, blank=True)
    error_message = models.TextField(blank=True)
    output = models.JSONField(null=True)
    output_log = models.TextField(blank=True)

    seq = models.PositiveBigIntegerField(default=0)
    """Raised by every committed change; never part of a condition."""
    next_index = models.PositiveIntegerField(default=0)
    """Index of the next step; the reply commit is conditional on it."""
    next_number = models.PositiveIntegerField(default=0)
    """Number of the next model call."""
    fence = models.PositiveIntegerField(default=0)
    """Raised by every claim; a worker with an older one is a zombie."""
    lease_until = models.DateTimeField(null=True)
    worker = models.ForeignKey(
        Worker, null=True, on_delete=models.SET_NULL, related_name="runs"
    )
    """Who has it, or had it last."""
    rung_at = models.DateTimeField(null=True)
    not_before = models.DateTimeField(null=True)
    rescues = models.PositiveSmallIntegerField(default=0)
    """Claims after a lost lease in a row, without a new step."""
    cancel_requested_at = models.DateTimeField(null=True)
    cancelled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    created_at = models.DateTimeField(auto_now_add=True)
    queued_at = models.DateTimeField()
    """When it last entered the queue."""
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    rounds = models.PositiveIntegerField(default=0)
    model_calls = models.PositiveIntegerField(default=0)
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cost = models.DecimalField(max_digits=14, decimal_places=6, default=0)
    rating = models.SmallIntegerField(null=True)
    """What the person who asked thinks of the answer: 1 good, -1 poor."""
    filed = models.BooleanField(default=False, db_default=False)
    """Whether the card that lists search by says what the run is now."""

    objects = RunQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["owner", "-id"], name="run_by_owner"),
            models.Index(fields=["agent", "-id"], name="run_by_agent"),
            models.Index(fields=["status", "-id"], name="run_by_status"),
            models.Index(
                fields=["queued_at"],
                condition=Q(status__in=UNFINISHED),
                name="run_unfinished",
            ),
            models.Index(fields=["id"], condition=Q(filed=False), name="run_unfiled"),
            models.Index(
                fields=["schedule", "-id"],
                condition=Q(schedule__isnull=False),
                name="run_by_schedule",
            ),
            models.Index(  # few rows, however many runs a schedule has had
                fields=["schedule", "ended_at"],
                condition=Q(schedule__isnull=False, ended_at=None),
                name="run_of_schedule_at_work",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                name="run_status_known", condition=Q(status__in=OVER + UNFINISHED)
            ),
            models.CheckConstraint(
                name="run_lease_while_running_only",
                condition=Q(status="running", lease_until__isnull=False)
                | ~Q(status="running") & Q(lease_until=None),
            ),
            models.CheckConstraint(
                name="run_over_has_an_end",
                condition=Q(ended_at__isnull=False, status__in=OVER)
                | Q(ended_at=None, status__in=UNFINISHED),
            ),
            models.CheckConstraint(
                name="run_stopped_says_why",
                condition=Q(status="stopped") & ~Q(stop_reason="")
                | ~Q(status="stopped") & Q(stop_reason=""),
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"

    @property
    def is_over(self) -> bool:
        """Whether nothing happens any more, unless a person resumes it."""
        return self.status in OVER

    @property
    def answer(self) -> Any:
        """What the model answered; None where a limit came before it."""
        has_answer = self.status != "stopped" or not is_sentence(self.output)
        return self.output if has_answer else None

    @property
    def can_resume(self) -> bool:
        """Whether a person may continue it; who called an agent has gone on."""
        return self.status in ("stopped", "failed") and self.parent_step_id is None

    @property
    def needs_a_person(self) -> bool:
        """Whether the run waits for an answer of a person."""
        return self.status in ("awaiting_approval", "awaiting_decision")


class Resume(models.Model):
    """A person continued a stopped or failed run; its limits count from there."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="resumes")
    at_index = models.PositiveIntegerField()
    """How many steps the run had."""
    at_number = models.PositiveIntegerField()
    """How many model calls it had; those at this index are set aside, not replayed."""
    limits = models.JSONField(default=dict)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"resume of {self.run_id} at {self.at_index}"


class IdempotencyKey(models.Model):
    """A client's own name for one request to start a run."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    key = models.CharField(max_length=200)
    body_digest = models.CharField(max_length=64)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="idempotency_once")
        ]

    def __str__(self) -> str:
        return self.key
