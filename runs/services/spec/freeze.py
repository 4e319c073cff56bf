"""Freezing an agent: everything a run needs, as one immutable spec without secrets."""

import hashlib
import json
from typing import Any

from runs.engine.check import problems_of
from runs.engine.kinds.registry import KINDS
from runs.engine.prompts import input_variables_of
from runs.engine.types import (
    AgentSpec,
    ExecutorOptions,
    ModelSettings,
    PromptMessage,
    PromptSpec,
)
from runs.models import Agent, AgentTool, PromptTemplate, Spec
from runs.services.errors import FieldError, SpecRefused
from runs.services.prices_of import prices_of
from tools.overrides import read_overrides
from tools.services import tool_spec_of
from tools.spec import ToolSpec

AGENT_KIND = "agent"
"""Kind of the tool that is another agent; a call of it is a child run."""
LONGEST_NAME = 64
"""Characters of a tool's name; a slug may be longer."""


def freeze_agent(agent: Agent) -> AgentSpec:
    """Return `agent` as it is now: prompt, model settings, tools and limits."""
    settings = ModelSettings(
        model=agent.model,
        provider=agent.provider.slug,
        provider_id=agent.provider_id,
        parameters=agent.parameters,
        stream=agent.provider.stream,
    )
    return AgentSpec(
        kind=agent.kind,
        name=agent.name,
        slug=agent.slug,
        prompt=prompt_spec_of(agent.prompt) if agent.prompt else None,
        model=settings,
        tools=tuple(_tools_of(agent)),
        executor=ExecutorOptions.model_validate(agent.executor),
        prices=prices_of(settings),
    )


def prompt_spec_of(prompt: PromptTemplate) -> PromptSpec:
    """Return a stored template as the engine takes it."""
    if prompt.messages:
        messages = tuple(PromptMessage.model_validate(row) for row in prompt.messages)
        return PromptSpec(messages=messages, partials=prompt.partials)
    return PromptSpec(template=prompt.template, partials=prompt.partials)


def spec_row(spec: AgentSpec) -> Spec:
    """Return the row of `spec`; equal specs share one."""
    body = body_of(spec)
    digest = digest_of(body)
    row = Spec.objects.filter(digest=digest).first()
    if row is None:
        row, _ = Spec.objects.get_or_create(digest=digest, defaults={"body": body})
    return row


def body_of(spec: AgentSpec) -> dict[str, Any]:
    """Return `spec` as it is stored."""
    body = spec.model_dump(mode="json", exclude_defaults=True)
    return body | {"kind": spec.kind}


def digest_of(body: dict[str, Any]) -> str:
    """Return what equal bodies have in common, and no others."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def spec_of(row: Spec) -> AgentSpec:
    """Return what was frozen."""
    return AgentSpec.model_validate(row.body)


def refuse_flaws(spec: AgentSpec) -> None:
    """Raise `SpecRefused` where a run of `spec` would end before its first call."""
    problems = problems_of(spec)
    if problems:
        raise SpecRefused(FieldError(p.field, p.message) for p in problems)


def variables_of_spec(spec: AgentSpec) -> tuple[str, ...]:
    """Return the inputs a run of `spec` takes; the question itself comes first."""
    names = input_variables_of(spec.prompt or KINDS[spec.kind].prompt)
    return tuple(sorted(names, key=lambda name: name != "input"))


def variables_of_agent(agent: Agent) -> tuple[str, ...]:
    """Return the inputs a run of the draft of `agent` takes."""
    return variables_of_spec(freeze_agent(agent))


def _tools_of(agent: Agent) -> list[ToolSpec]:
    uses = AgentTool.objects.filter(agent=agent).exclude(policy=AgentTool.Policy.DENY)
    rows = uses.select_related("tool", "sub_agent__prompt")
    return [spec for use in rows if (spec := _tool_of(use)) is not None]


def _tool_of(use: AgentTool) -> ToolSpec | None:
    if use.tool is not None:
        return tool_spec_of(use.tool, policy=use.policy, overrides=use.overrides)
    if use.sub_agent is not None:
        return agent_tool_spec(
            use.sub_agent, policy=use.policy, overrides=use.overrides
        )
    return None


def agent_tool_spec(
    agent: Agent, *, policy: str = "default", overrides: dict[str, Any] | None = None
) -> ToolSpec:
    """Return `agent` as a tool of another: it takes what its own runs take.

    A call is a child run and may be repeated: the same step always finds the same
    child. Only the policy `ask` asks a person; what the child itself does asks by its
    own tools.
    """
    own = read_overrides(overrides)
    return ToolSpec.model_validate(
        {
            "name": agent.slug[:LONGEST_NAME],
            "description": agent.description
            or f"Asks the agent {agent.name} and returns its answer.",
            "args_schema": _schema_of(_inputs_of(agent)),
            "effect": "idempotent",
            "asks": policy == AgentTool.Policy.ASK,
            "kind": AGENT_KIND,
            "config": {"agent": agent.slug, "agent_id": agent.pk},
            "calls_per_run": own.calls_per_run,
            "output_limit": own.output_limit,
            **own.plain(),
        }
    )


def _inputs_of(agent: Agent) -> tuple[str, ...]:
    """Return the inputs of what would run; its own tools are not looked at."""
    version = agent.versions.select_related("spec").first()
    if version is not None:
        return variables_of_spec(spec_of(version.spec))
    prompt = prompt_spec_of(agent.prompt) if agent.prompt else None
    return variables_of_spec(AgentSpec(kind=agent.kind, prompt=prompt))


def _schema_of(names: tuple[str, ...]) -> dict[str, Any]:
    properties: dict[str, Any] = {name: {"type": "string"} for name in names}
    if names:
        properties[names[0]]["description"] = (
            "What the agent is to do, with everything it has to know: it sees nothing "
            "of this conversation."
        )
    return {"type": "object", "properties": properties, "required": list(names)}
