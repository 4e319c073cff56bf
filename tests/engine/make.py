"""Makers for engine tests: specs, replies, and a driver that answers from a list."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from runs.engine.digest import digest_request
from runs.engine.effects import (
    CallModel,
    CallTools,
    ModelReplied,
    Outcome,
    PlannedStep,
    ToolResult,
    ToolsFinished,
)
from runs.engine.executor import run_agent_loop
from runs.engine.observations import stringify_value
from runs.engine.scenarios import flatten_request
from runs.engine.types import (
    AgentResult,
    AgentSpec,
    ExecutorOptions,
    HistoryTurn,
    PromptSpec,
    Reply,
    ResumePoint,
    ToolCall,
)
from tools.spec import ToolSpec

ACT = "Action: echo\nAction Input: x"
END = "Final Answer: end"


def make_tool(name: str = "echo", **fields: Any) -> ToolSpec:
    return ToolSpec(name=name, **fields)


def make_spec(
    kind: str = "react",
    *,
    tools: Sequence[ToolSpec] | None = None,
    prompt: PromptSpec | None = None,
    prices: Any = None,
    **options: Any,
) -> AgentSpec:
    return AgentSpec(
        kind=kind,
        tools=(make_tool(),) if tools is None else tuple(tools),
        prompt=prompt,
        prices=prices,
        executor=ExecutorOptions(**options),
    )


def make_reply(text: str = "", *calls: tuple[str, Any], **fields: Any) -> Reply:
    made = tuple(
        ToolCall(id=f"c{index}", name=name, arguments=json.dumps(arguments))
        for index, (name, arguments) in enumerate(calls)
    )
    return Reply(text=text, tool_calls=made, **fields)


def echo(step: PlannedStep) -> ToolResult:
    value = f"echo: {stringify_value(step.action.tool_input)}"
    return ToolResult(value, value=value)


@dataclass
class Driven:
    """How a run went: its end, what it asked for, and what it was told."""

    result: AgentResult
    effects: list[CallModel | CallTools] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def requests(self) -> list[str]:
        return [flatten_request(e.request) for e in self.effects if is_model(e)]

    @property
    def digests(self) -> list[str]:
        return [digest_request(e.request) for e in self.effects if is_model(e)]

    @property
    def purposes(self) -> list[str]:
        return [e.purpose for e in self.effects if is_model(e)]

    @property
    def steps(self) -> list[tuple[str, Any, str]]:
        pairs = zip(self.effects, self.outcomes, strict=True)
        return [
            (step.action.tool, step.action.tool_input, result.observation)
            for effect, outcome in pairs
            if isinstance(effect, CallTools) and isinstance(outcome, ToolsFinished)
            for step, result in zip(effect.steps, outcome.results, strict=True)
        ]


def is_model(effect: object) -> bool:
    return isinstance(effect, CallModel)


def drive(
    spec: AgentSpec,
    replies: Sequence[str | Reply | Outcome],
    *,
    tool: Callable[[PlannedStep], ToolResult] = echo,
    turns: Sequence[HistoryTurn] = (),
    resumes: Sequence[ResumePoint] = (),
    inputs: dict[str, Any] | None = None,
    recorded: Sequence[Outcome] = (),
) -> Driven:
    """Run a spec: first answers on record, then `replies` and `tool`."""
    run = run_agent_loop(spec, inputs or {"input": "q"}, turns=turns, resumes=resumes)
    waiting, record = list(replies), list(recorded)
    driven = Driven(AgentResult(status="failed"))
    try:
        effect = next(run)
        while True:
            driven.effects.append(effect)
            outcome = record.pop(0) if record else _answer(effect, waiting, tool)
            driven.outcomes.append(outcome)
            effect = run.send(outcome)
    except StopIteration as end:
        driven.result = end.value
    return driven


def _answer(effect, waiting, tool) -> Outcome:
    if isinstance(effect, CallModel):
        reply = waiting.pop(0)
        if isinstance(reply, str):
            return ModelReplied(Reply(text=reply))
        return ModelReplied(reply) if isinstance(reply, Reply) else reply
    return ToolsFinished(
        tuple(
            ToolResult(step.observation or "", failed=True)
            if step.is_answered
            else tool(step)
            for step in effect.steps
        )
    )
