"""What the executor asks for, and what it is told: the border between loop and world.

The executor yields an effect and is sent its outcome:

    CallModel -> ModelAnswered | ModelRefused | ModelOutOfTime
    CallTools -> ToolsAnswered

A driver that has an outcome on record sends that instead of acting; resume, fork and
replay are nothing else. Time reaches the loop only as the `elapsed` of outcomes, in
seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from runs.engine.types import AgentAction, ModelRequest, Reply
from tools.spec import ToolSpec

Purpose = Literal["plan", "early_stop", "summary"]


@dataclass(frozen=True)
class CallModel:
    """Ask the model; the request is built only when somebody looks at it."""

    purpose: Purpose
    build: Callable[[], ModelRequest] = field(repr=False)
    at_index: int
    """How many steps the run had when it asked."""
    round: int
    """Which round the reply will be, from 1."""
    seconds: float | None = None
    """Working time the run has left; None without a limit."""
    left_out: tuple[int, ...] = ()
    """Rounds, from 1, that the request does not show (trimming, context size)."""

    @cached_property
    def request(self) -> ModelRequest:
        """The request, built once."""
        return self.build()


@dataclass(frozen=True)
class PlannedStep:
    """One action of a round, in call order; answered where no tool has to run."""

    index: int
    """Position among all steps of the run, from 0."""
    action: AgentAction
    tool: ToolSpec | None = None
    """The tool to call; None where the step is answered."""
    observation: str | None = None
    """The answer of a parse error, an unknown tool or a bad input."""

    @property
    def is_answered(self) -> bool:
        """Whether nothing has to run."""
        return self.tool is None


@dataclass(frozen=True)
class CallTools:
    """Run the calls of one reply; sent for every reply with steps, answered or not."""

    round: int
    steps: tuple[PlannedStep, ...]
    seconds: float | None = None


Effect = CallModel | CallTools


@dataclass(frozen=True)
class ModelAnswered:
    """The model replied."""

    reply: Reply
    elapsed: float = 0.0


@dataclass(frozen=True)
class ModelRefused:
    """The call failed for good; the run ends with this sentence."""

    code: str
    message: str
    elapsed: float = 0.0


@dataclass(frozen=True)
class ModelOutOfTime:
    """The run's own time limit ended the call."""

    elapsed: float = 0.0


@dataclass(frozen=True)
class ToolResult:
    """What became of one step; one for each of `CallTools.steps`, in their order."""

    observation: str
    failed: bool = False
    value: Any = None
    """The tool's value, needed only where it may be returned directly."""
    elapsed: float = 0.0
    """Seconds from the beginning of the round's calls to the end of this one."""
    is_copied: bool = False
    """It was told in another run, and holds where this one's tools say otherwise."""
    tokens: int = 0
    """What an agent that was called has used; it counts against the budget."""
    cost: float = 0.0
    """In the currency of the price table."""


@dataclass(frozen=True)
class ToolsAnswered:
    """All calls of the round are over."""

    results: tuple[ToolResult, ...]


Outcome = ModelAnswered | ModelRefused | ModelOutOfTime | ToolsAnswered
