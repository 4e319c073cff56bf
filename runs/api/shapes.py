"""The shapes of runs, steps, model calls and approvals in responses."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

RunStatus = Literal[
    "queued",
    "running",
    "awaiting_approval",
    "awaiting_decision",
    "waiting",
    "succeeded",
    "limit_reached",
    "failed",
    "canceled",
]
StepStatus = Literal[
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


class Shape(BaseModel):
    """A part of a response."""

    model_config = ConfigDict(extra="forbid")


class ErrorShape(Shape):
    """Why something failed."""

    code: str
    message: str


class UsageShape(Shape):
    """What a run used, sub-agents included."""

    input_tokens: int
    output_tokens: int
    cost: float
    """In the currency of your prices."""
    model_calls: int


class ParentShape(Shape):
    """The step of another run that waits for this one."""

    run: int
    step: int


class ToolModeShape(Shape):
    """How the calls of a run are answered."""

    kind: str
    recording: int | None
    """The run that it replays."""


class StepShape(Shape):
    """A tool call and its observation."""

    index: int
    round: int
    tool: str
    tool_input: Any
    log: str
    observation: str | None
    """Null until there is one."""
    error: bool
    """Whether the observation is an error."""
    status: StepStatus
    duration_ms: int | None
    child: int = 0
    """The run that it has started, if it called an agent."""
    answered_by: str = ""
    """What has answered it, if it was not called."""
    progress: str = ""
    """What its tool has last reported, while it runs."""


class WaitingShape(Shape):
    """What a run waits for: a provider during an outage, or a limit."""

    provider: str | None
    next_attempt_at: str | None
    until: str | None = None
    """When it gives up waiting for the provider."""
    limit: str = ""
    """`user`, `agent`, `provider`, `requests` or `tokens`."""
    most: int | None = None
    """The number of the limit."""


class RunShape(Shape):
    """One execution of an agent."""

    id: int
    status: RunStatus
    is_over: bool
    stop_reason: str | None
    """The limit, if the status is `limit_reached`."""
    error: ErrorShape | None
    agent: str
    """Slug."""
    version: int | None
    """Null for the draft."""
    conversation: int | None
    inputs: dict[str, Any]
    output: Any
    finish_reason: str | None
    truncated: bool
    """Whether the token limit of the model cut off the last reply."""
    keep_forever: bool
    seq: int
    """Raised by every change; `?after=` of the event stream."""
    created_at: str
    started_at: str | None
    ended_at: str | None
    usage: UsageShape
    waiting_for: WaitingShape | None = None
    tool_mode: ToolModeShape | None = None
    parent: ParentShape | None = None


class RunWithStepsShape(RunShape):
    """A run with its steps, unless they were left out."""

    steps: list[StepShape] = []
    steps_next: int | None = None
    """The next `?steps_after=`; null if there are no more."""


class RunListShape(RunShape):
    """A run in a list."""

    owner: str
    title: str
    """The first line of the question."""
    source: Literal["page", "api", "schedule", "parent", "eval"]
    is_test: bool
    rating: Literal[1, -1] | None
    tags: list[str]


class CallUsageShape(Shape):
    """What a model call used."""

    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost: float


class CallShape(Shape):
    """One request to a model and its reply."""

    number: int
    purpose: Literal["plan", "early_stop", "summary"]
    round: int
    at_index: int
    """How many steps the run had."""
    model: str
    text: str
    reasoning: str
    tool_calls: list[dict[str, Any]]
    finish_reason: str
    truncated: bool
    usage: CallUsageShape
    started_at: str
    duration_ms: int
