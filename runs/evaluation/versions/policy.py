"""What the approval rules and limits of a spec decide about a recorded run.

The engine's own counters are fed with what was stored: no model is asked, and no tool
is called.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from runs.engine.planning import has_reached_call_limit
from runs.engine.progress import Progress
from runs.engine.types import AgentAction, AgentSpec, AgentStep, RunError, Usage
from tools.spec import ToolSpec


class PolicyStep(NamedTuple):
    """A stored step, as far as rules look at it."""

    at_index: int
    tool: str
    tool_id: int | None
    tool_input: Any
    observation: str
    is_call: bool
    """Whether a tool was to be called: False if the step was answered without one."""
    elapsed: float = 0.0
    tokens: int = 0
    """Of an agent that was called; `cost` too."""
    cost: float = 0.0


class PolicyRound(NamedTuple):
    """A stored model call with the steps of its reply, none for an answer."""

    usage: Usage
    elapsed: float
    steps: tuple[PolicyStep, ...] = ()
    is_parse_error: bool = False


class PolicyVerdict(NamedTuple):
    """What a policy decides about a run."""

    asked: frozenset[int]
    """Indexes of the steps that a person would have to approve."""
    refused: frozenset[int]
    """Indexes of the calls that would not be made."""
    stop_reason: str = ""
    """A `StopReason` if the run would have ended at a limit."""
    stopped_at: int | None = None
    """How many steps it would have had then."""


def apply_policy(
    spec: AgentSpec, rounds: Sequence[PolicyRound], *, wanted_more: bool = False
) -> PolicyVerdict:
    """Return what `spec` decides about the recorded rounds, up to its limits.

    `wanted_more`: the run had no answer after the last round, as at a limit.
    """
    progress, used = Progress(spec, ()), Counter[str]()
    asked: set[int] = set()
    refused: set[int] = set()
    for one in rounds:
        if reason := find_reached_limit(progress):
            break
        progress.add_time(one.elapsed)
        progress.add_usage(one.usage)
        for step in one.steps:
            if not step.is_call:
                continue
            tool = find_tool(spec, step)
            if tool is None or has_reached_call_limit(tool, used):
                refused.add(step.at_index)
            elif tool.asks:
                asked.add(step.at_index)
            used[tool.name if tool else ""] += 1
        if one.steps:
            add_steps(progress, one)
    else:
        reason = find_reached_limit(progress) if wanted_more else ""
    end = progress.steps if reason else None
    return PolicyVerdict(frozenset(asked), frozenset(refused), reason, end)


def find_reached_limit(progress: Progress) -> str:
    """Return the limit that allows no further model call; empty if none does."""
    reason = progress.find_end_reason()
    return "" if reason is None or isinstance(reason, RunError) else reason


def find_tool(spec: AgentSpec, step: PolicyStep) -> ToolSpec | None:
    """Return the tool of a call: of the same name, else the same tool renamed."""
    named = next((one for one in spec.tools if one.name == step.tool), None)
    if named is not None or step.tool_id is None:
        return named
    return next((one for one in spec.tools if one.tool_id == step.tool_id), None)


def add_steps(progress: Progress, one: PolicyRound) -> None:
    progress.add_time(max(step.elapsed for step in one.steps))
    progress.add_agent_usage(
        tokens=sum(step.tokens for step in one.steps),
        cost=sum(step.cost for step in one.steps),
    )
    steps = tuple(
        AgentStep(
            action=AgentAction(tool=step.tool, tool_input=step.tool_input),
            observation=step.observation,
        )
        for step in one.steps
    )
    progress.add_round(steps, is_parse_error=one.is_parse_error)
