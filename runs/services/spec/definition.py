"""The definition of an agent as a value: what a version keeps to be restored."""

from typing import Any, Literal

from runs.engine.types import AgentSpec, FrozenModel, PromptSpec
from runs.models import Agent, AgentTool, AgentVersion
from runs.services.spec.freeze import build_prompt_spec
from runs.services.spec.inline_prompt import is_inline_prompt
from runs.store.specs import load_spec


class ToolBinding(FrozenModel):
    """A tool or agent that the agent uses; exactly one of the two is set."""

    tool: int | None = None
    sub_agent: int | None = None
    name: str = ""
    """Its name at that time."""
    policy: str = "default"
    overrides: dict[str, Any] = {}


class AgentDefinition(FrozenModel):
    """All columns of an agent that affect its runs, with tools and prompt."""

    description: str = ""
    kind: str
    provider: int
    model: str
    parameters: dict[str, Any] = {}
    executor: dict[str, Any] = {}
    memory: bool = False
    suggested_questions: tuple[str, ...] = ()
    source: Literal["kind", "own", "library"] = "kind"
    """Where the prompt is from: the kind, the agent's page, or the library."""
    prompt: int | None = None
    """The row, if it is from the library."""
    prompt_kind: str = ""
    words: PromptSpec | None = None
    """The prompt at that time; its row may have changed since."""
    uses: tuple[ToolBinding, ...] = ()


def build_agent_definition(agent: Agent) -> AgentDefinition:
    prompt = agent.prompt
    own = prompt is not None and is_inline_prompt(prompt, agent)
    uses = AgentTool.objects.filter(agent=agent).select_related("tool", "sub_agent")
    return AgentDefinition(
        description=agent.description,
        kind=agent.kind,
        provider=agent.provider_id,
        model=agent.model,
        parameters=agent.parameters,
        executor=agent.executor,
        memory=agent.memory,
        suggested_questions=tuple(agent.suggested_questions),
        source="kind" if prompt is None else "own" if own else "library",
        prompt=None if own else agent.prompt_id,
        prompt_kind=prompt.kind if prompt else "",
        words=build_prompt_spec(prompt) if prompt else None,
        uses=tuple(
            ToolBinding(
                tool=use.tool_id,
                sub_agent=use.sub_agent_id,
                name=str(use.tool or use.sub_agent),
                policy=use.policy,
                overrides=use.overrides,
            )
            for use in uses
        ),
    )


def get_version_definition(version: AgentVersion) -> AgentDefinition:
    """Return the definition of `version`; for an old one, from its spec."""
    if version.definition is not None:
        return AgentDefinition.model_validate(version.definition)
    return _build_definition_from_spec(load_spec(version.spec), version.agent)


def uses_memory(agent: Agent, version: AgentVersion | None) -> bool:
    """Whether earlier turns reach the model: as published, or as in the draft."""
    if version is None or version.definition is None:
        return agent.memory
    return bool(version.definition.get("memory", False))


def get_agent_description(agent: Agent, version: AgentVersion | None) -> str:
    """Return the description: as published, or as in the draft."""
    if version is None or version.definition is None:
        return agent.description
    return str(version.definition.get("description", ""))


def get_suggested_questions(
    agent: Agent, version: AgentVersion | None
) -> tuple[str, ...]:
    """Return the suggested questions: as published, or as in the draft."""
    if version is None or version.definition is None:
        return tuple(agent.suggested_questions)
    return tuple(version.definition.get("suggested_questions", ()))


def _build_definition_from_spec(spec: AgentSpec, agent: Agent) -> AgentDefinition:
    """Convert a version published before definitions were stored."""
    return AgentDefinition(
        description=agent.description,
        kind=spec.kind,
        provider=spec.model.provider_id or agent.provider_id,
        model=spec.model.model,
        parameters=spec.model.parameters,
        executor=spec.executor.model_dump(mode="json", exclude_defaults=True),
        memory=agent.memory,
        suggested_questions=tuple(agent.suggested_questions),
        source="kind" if spec.prompt is None else "own",
        prompt_kind=spec.kind,
        words=spec.prompt,
        uses=tuple(
            ToolBinding(
                tool=tool.tool_id,
                name=tool.name,
                policy="ask" if tool.asks else "allow",
            )
            for tool in spec.tools
            if tool.tool_id is not None
        ),
    )
