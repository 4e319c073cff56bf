"""Effects and outcomes: the boundary between the agent loop and the world.

The executor yields an effect and is sent its outcome:

    CallModel -> ModelReplied | ModelCallFailed | ModelCallTimedOut
    CallTools -> ToolsFinished

A driver with a recorded outcome sends that instead of acting; resume, fork and replay
are nothing else. Time reaches the loop only as the `elapsed` of outcomes, in seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from runs.engine.types import AgentAction, MediaPart, ModelRequest, Reply
from tools.spec import ToolSpec

Purpose = Literal["plan", "early_stop", "summary"]


@dataclass(frozen=True)
class CallModel:
    """Call the model; the request is built when it is first read."""

    purpose: Purpose
    build: Callable[[], ModelRequest] = field(repr=False)
    at_index: int
    """How many steps the run had at the call."""
    round: int
    """The round of the reply, from 1."""
    seconds: float | None = None
    """Working time the run has left; None without a limit."""
    left_out: tuple[int, ...] = ()
    """Rounds, from 1, that the request leaves out (trimming, context size)."""

    @cached_property
    def request(self) -> ModelRequest:
        """The request, built once."""
        return self.build()


@dataclass(frozen=True)
class PlannedStep:
    """One action of a round, in call order; already answered if no tool has to run."""

    index: int
    """Position among all steps of the run, from 0."""
    action: AgentAction
    tool: ToolSpec | None = None
    """The tool to call; None if the step is answered."""
    observation: str | None = None
    """The observation for a parse error, an unknown tool or invalid input."""

    @property
    def is_answered(self) -> bool:
        return self.tool is None


@dataclass(frozen=True)
class CallTools:
    """Run the calls of one reply; sent for every reply with steps, answered or not."""

    round: int
    steps: tuple[PlannedStep, ...]
    seconds: float | None = None


Effect = CallModel | CallTools


@dataclass(frozen=True)
class ModelReplied:
    reply: Reply
    elapsed: float = 0.0


@dataclass(frozen=True)
class ModelCallFailed:
    """The call failed for good; the run ends with this message."""

    code: str
    message: str
    elapsed: float = 0.0


@dataclass(frozen=True)
class ModelCallTimedOut:
    """The run's own time limit ended the call."""

    elapsed: float = 0.0


@dataclass(frozen=True)
class ToolResult:
    """The outcome of one step; one for each of `CallTools.steps`, in their order."""

    observation: str
    failed: bool = False
    value: Any = None
    """The tool's value, needed only if it may be returned directly."""
    elapsed: float = 0.0
    """Seconds from the start of the round's calls to the end of this one."""
    is_copied: bool = False
    """Recorded in another run; holds even if this run's tools would differ."""
    tokens: int = 0
    """Used by a called agent; counts against the budget."""
    cost: float = 0.0
    """In the currency of the price table."""
    media: tuple[MediaPart, ...] = ()
    """For a model that takes them."""


@dataclass(frozen=True)
class ToolsFinished:
    results: tuple[ToolResult, ...]


Outcome = ModelReplied | ModelCallFailed | ModelCallTimedOut | ToolsFinished
