"""A run: its state, lease and fence, and what people did to it."""

from typing import Any, Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from runs.engine.stopping import is_stop_message
from runs.engine.types import TRUNCATED
from runs.models.agents import Agent, AgentVersion, Spec
from runs.models.providers import Provider
from runs.models.schedules import Schedule
from runs.models.workers import Worker
from tools.ownership import filter_own_rows
from tools.text.translatable_field import TranslatableTextField

FINISHED_STATUSES = ["succeeded", "limit_reached", "failed", "canceled"]
UNFINISHED_STATUSES = [
    "queued",
    "running",
    "awaiting_approval",
    "awaiting_decision",
    "waiting",
]


class Conversation(models.Model):
    """Consecutive runs of one agent; the model sees earlier turns."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="conversations"
    )
    agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="conversations"
    )
    title = models.CharField(max_length=200, blank=True)
    is_test = models.BooleanField(default=False)
    """A test chat on the agent's page: runs of the draft."""
    branch_of = models.ForeignKey(
        "self", null=True, on_delete=models.SET_NULL, related_name="branches"
    )
    """The conversation that has its turns before `branch_at`."""
    branch_at = models.PositiveBigIntegerField(null=True, db_index=True)
    """Number of the run that this branch replaces."""
    root = models.ForeignKey(
        "self", null=True, on_delete=models.SET_NULL, related_name="all_branches"
    )
    """Where the branches began, at any depth: people see them as one conversation."""
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.title or f"conversation {self.pk}"

    @property
    def root_pk(self) -> int:
        """The same for all branches of a conversation."""
        return self.root_id or self.pk


class RunQuerySet(models.QuerySet["Run"]):
    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Return the user's own runs; all for superusers."""
        return filter_own_rows(self, user)

    def waiting_for_provider(self) -> Self:
        """Return the runs whose model call has run out of quick retries."""
        return self.filter(
            status=Run.Status.WAITING,
            waiting_provider__isnull=False,
            waiting_since__isnull=False,
        )

    def asking_approver(self, user: User | AnonymousUser) -> Self:
        """Return the runs that have asked a group of approvers of the user."""
        if not user.is_authenticated:
            return self.none()
        return self.filter(steps__decisions__approvers__in=user.groups.all()).distinct()


class Run(models.Model):
    """One execution of an agent, durable from its first row to its last."""

    class Status(models.TextChoices):
        """Changed only by `runs.store.transitions`."""

        QUEUED = "queued", _("Queued")
        RUNNING = "running", _("Running")
        AWAITING_APPROVAL = "awaiting_approval", _("Awaiting approval")
        AWAITING_DECISION = "awaiting_decision", _("Awaiting decision")
        WAITING = "waiting", _("Waiting")
        SUCCEEDED = "succeeded", _("Succeeded")
        LIMIT_REACHED = "limit_reached", _("Limit reached")
        FAILED = "failed", _("Failed")
        CANCELED = "canceled", _("Canceled")

    class StopReason(models.TextChoices):
        """The limit that ended a run with status `limit_reached`."""

        ITERATIONS = "iterations", _("Round limit reached")
        TIME = "time", _("Time limit reached")
        TOKENS = "tokens", _("Token budget used up")
        COST = "cost", _("Cost budget used up")
        LOOP = "loop", _("Loop without progress")
        EXPIRED = "expired", _("Approval expired")

    class Source(models.TextChoices):
        """How a run was started; the labels follow a name: "ann, through the API"."""

        PAGE = "page", _("in the dashboard")
        API = "api", _("through the API")
        SCHEDULE = "schedule", _("by a schedule")
        PARENT = "parent", _("by another run")
        EXPERIMENT = "eval", _("by an experiment")
        HOOK = "hook", _("by an incoming webhook")
        IMPORT = "import", _("by importing a trace")

    class Queue(models.TextChoices):
        """Which workers execute a run; each of them serves one or more queues."""

        LIVE = "live", _("Live")
        SCHEDULES = "schedules", _("Schedules")
        BULK = "bulk", _("Bulk")

    class ToolMode(models.TextChoices):
        """How its tool calls are answered; see `runs.engine.types.ToolMode`."""

        LIVE = "", _("Calls made")
        HOLD_BACK = "hold_back", _("Calls held back")
        REPLAY_STRICT = "replay_strict", _("Strict replay")
        REPLAY_BY_TOOL = "replay_by_tool", _("Replay by tool")

    class Limit(models.TextChoices):
        """Runs at once of a user, an agent or a provider; a rate of a provider."""

        USER = "user", _("Runs of the user")
        AGENT = "agent", _("Runs of the agent")
        PROVIDER = "provider", _("Runs of the provider")
        REQUESTS = "requests", _("Requests per minute")
        TOKENS = "tokens", _("Tokens per minute")

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
    """How many of its steps are copies; null for a run that is not a fork."""
    fork_row = models.PositiveIntegerField(null=True)
    """The row number, the same in both runs, from which they differ."""
    fork_edits = models.JSONField(default=list)
    """What was changed: prompt, model, tools, limits, reply, observation."""
    earlier_inputs = models.JSONField(null=True)
    """The inputs of copied calls, if a fork has other inputs.

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
    """The schedule that started it; null also if that was deleted."""
    is_test = models.BooleanField(default=False)
    tool_mode = models.CharField(
        max_length=16, choices=ToolMode, blank=True, default="", db_default=""
    )
    """The kind of the spec's tool mode."""
    title = models.CharField(max_length=200, blank=True)
    """The first line of the question, for lists."""
    inputs = models.JSONField(default=dict)
    turn_ids = models.JSONField(default=list)
    """Earlier runs of the conversation that the model sees, frozen at the start."""
    given_turns = models.JSONField(null=True)
    """Earlier messages that came with the request, `[[question, answer], …]`.

    Either may be null: a question without an answer, an answer nobody asked for.
    """

    status = models.CharField(max_length=20, choices=Status, default=Status.QUEUED)
    stop_reason = models.CharField(max_length=12, choices=StopReason, blank=True)
    error_code = models.CharField(max_length=40, blank=True)
    error_message = TranslatableTextField(blank=True)
    output = models.JSONField(null=True)
    output_log = models.TextField(blank=True)
    finish_reason = models.CharField(
        max_length=40, blank=True, default="", db_default=""
    )
    """Why the model stopped writing the reply that ended the run: stop, length …"""

    queue = models.CharField(
        max_length=12, choices=Queue, default=Queue.LIVE, db_default=Queue.LIVE
    )
    seq = models.PositiveBigIntegerField(default=0)
    """Raised by every committed change; never part of a condition."""
    next_index = models.PositiveIntegerField(default=0)
    """Index of the next step; a reply is committed only if this is unchanged."""
    next_number = models.PositiveIntegerField(default=0)
    """Number of the next model call."""
    fence = models.PositiveIntegerField(default=0)
    """Raised by every claim; a worker with a lower one has lost the run."""
    lease_until = models.DateTimeField(null=True)
    worker = models.ForeignKey(
        Worker, null=True, on_delete=models.SET_NULL, related_name="runs"
    )
    """The worker that has the run, or had it last."""
    enqueued_at = models.DateTimeField(null=True)
    available_at = models.DateTimeField(null=True)
    """When a waiting run is queued at the latest; null if it waits for child runs."""
    waiting_provider = models.ForeignKey(
        Provider,
        null=True,
        on_delete=models.SET_NULL,
        related_name="waiting_runs",
        db_index=False,
    )
    """The provider that the current model call has had to wait for."""
    waiting_for = models.CharField(
        max_length=12, choices=Limit, blank=True, default="", db_default=""
    )
    """The limit that the run waits for; that of a rate stays until its next reply."""
    agent_limit = models.PositiveIntegerField(null=True)
    """How many runs of its agent may run at once, by its spec; null for any number."""
    provider_key = models.BigIntegerField(null=True)
    """Key of the provider of its spec, which may have been deleted."""
    waiting_since = models.DateTimeField(null=True)
    """When that call ran out of quick retries; null if it did not."""
    recoveries = models.PositiveSmallIntegerField(default=0)
    """Consecutive claims after a lost lease without a new step."""
    cancel_requested_at = models.DateTimeField(null=True)
    canceled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    traceparent = models.CharField(max_length=55, blank=True, default="", db_default="")
    """The span that the run belongs to, as its caller or its parent named it."""
    trace_due_at = models.DateTimeField(null=True)
    """When the ended run is exported as a trace; null if it need not be."""
    traces_sent = models.PositiveSmallIntegerField(default=0, db_default=0)
    """Exports so far, one for each end; a resumed run has another one."""

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
    """1 for a good answer, -1 for a bad one."""
    indexed = models.BooleanField(default=False, db_default=False)
    """Whether the search row describes the run as it is now."""
    keep_forever = models.BooleanField(default=False, db_default=False)
    """Whether retention rules leave it out; set on whole trees of runs."""

    RATINGS = {"good": 1, "bad": -1}

    objects = RunQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(  # what lists filter by, so that they need not read the rows
                fields=["owner", "-id"],
                include=[
                    *("status", "agent", "is_test", "indexed"),
                    *("created_at", "source", "parent_step"),
                ],
                name="run_list_by_owner",
            ),
            models.Index(fields=["agent", "-id"], name="run_by_agent"),
            models.Index(  # the list usually leaves out tests and sub-agent runs
                fields=["-id"],
                include=["created_at"],
                condition=Q(is_test=False, parent_step=None),
                name="run_real",
            ),
            models.Index(fields=["-id"], condition=Q(is_test=True), name="run_test"),
            models.Index(fields=["created_at"], name="run_by_start"),
            models.Index(fields=["status", "-id"], name="run_by_status"),
            models.Index(
                fields=["queued_at"],
                condition=Q(status__in=UNFINISHED_STATUSES),
                name="run_unfinished",
            ),
            models.Index(
                fields=["id"], condition=Q(indexed=False), name="run_not_indexed"
            ),
            models.Index(
                fields=["trace_due_at"],
                condition=Q(trace_due_at__isnull=False),
                name="run_trace_due",
            ),
            models.Index(  # the errors of a period
                fields=["created_at"],
                condition=Q(status="failed"),
                name="run_failed_by_start",
            ),
            models.Index(
                fields=["waiting_provider", "queued_at"],
                condition=Q(waiting_provider__isnull=False),
                name="run_by_waiting_provider",
            ),
            models.Index(  # few rows, in the order in which they take turns
                fields=["waiting_for", "id"],
                condition=Q(status="waiting") & ~Q(waiting_for=""),
                name="run_waiting_for_limit",
            ),
            models.Index(
                fields=["rating", "-id"],
                condition=Q(rating__isnull=False),
                name="run_by_rating",
            ),
            models.Index(
                fields=["schedule", "-id"],
                condition=Q(schedule__isnull=False),
                name="run_by_schedule",
            ),
            models.Index(  # few rows, however many runs a schedule has had
                fields=["schedule", "ended_at"],
                condition=Q(schedule__isnull=False, ended_at=None),
                name="run_unfinished_of_schedule",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                name="run_status_known",
                condition=Q(status__in=FINISHED_STATUSES + UNFINISHED_STATUSES),
            ),
            models.CheckConstraint(
                name="run_lease_while_running_only",
                condition=Q(status="running", lease_until__isnull=False)
                | ~Q(status="running") & Q(lease_until=None),
            ),
            models.CheckConstraint(
                name="run_over_has_an_end",
                condition=Q(ended_at__isnull=False, status__in=FINISHED_STATUSES)
                | Q(ended_at=None, status__in=UNFINISHED_STATUSES),
            ),
            models.CheckConstraint(
                name="run_limit_has_a_reason",
                condition=Q(status="limit_reached") & ~Q(stop_reason="")
                | ~Q(status="limit_reached") & Q(stop_reason=""),
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"

    @property
    def is_over(self) -> bool:
        """Whether the run has ended; a person may still resume it."""
        return self.status in FINISHED_STATUSES

    @property
    def answer(self) -> Any:
        """Return the model's answer; None if a limit came first."""
        has_answer = self.status != "limit_reached" or not is_stop_message(self.output)
        return self.output if has_answer else None

    @property
    def has_earlier_messages(self) -> bool:
        """Whether the model sees messages from before this run."""
        return bool(self.turn_ids or self.given_turns)

    @property
    def is_truncated(self) -> bool:
        """Whether the token limit of the model cut off the last reply."""
        return self.finish_reason == TRUNCATED

    @property
    def can_resume(self) -> bool:
        """Whether a person may resume it; a sub-agent's caller has already moved on."""
        return (
            self.status in ("limit_reached", "failed")
            and self.parent_step_id is None
            and not self.is_imported
        )

    @property
    def is_imported(self) -> bool:
        """Whether another program executed it; it can only be looked at."""
        return self.source == self.Source.IMPORT

    @property
    def needs_a_person(self) -> bool:
        return self.status in ("awaiting_approval", "awaiting_decision")


class Resume(models.Model):
    """A person resumed an ended run; its limits count from there."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="resumes")
    at_index = models.PositiveIntegerField()
    """How many steps the run had."""
    at_number = models.PositiveIntegerField()
    """How many model calls it had; calls at this index are dropped, not replayed."""
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
    """A client's name for one request that starts a run or creates something else."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    key = models.CharField(max_length=200)
    body_digest = models.CharField(max_length=64)
    run = models.ForeignKey(Run, null=True, on_delete=models.CASCADE, related_name="+")
    location = models.CharField(max_length=200, blank=True, default="", db_default="")
    """Path in the API of what was created, if that is not a run."""
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="idempotency_once")
        ]

    def __str__(self) -> str:
        return self.key
