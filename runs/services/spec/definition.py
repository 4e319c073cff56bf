"""The definition of an agent as a value: what a version keeps so as to be restored."""

from typing import Any, Literal

from runs.engine.types import AgentSpec, Frozen, PromptSpec
from runs.models import Agent, AgentTool, AgentVersion
from runs.services.freeze_agent import prompt_spec_of, spec_of
from runs.services.own_prompt import is_own


class Use(Frozen):
    """A tool or agent in the hands of the agent; exactly one of the two is given."""

    tool: int | None = None
    sub_agent: int | None = None
    name: str = ""
    """What it was called, for people."""
    policy: str = "default"
    overrides: dict[str, Any] = {}


class Definition(Frozen):
    """All columns of an agent that shape its runs, with its tools and its prompt."""

    description: str = ""
    kind: str
    provider: int
    model: str
    parameters: dict[str, Any] = {}
    executor: dict[str, Any] = {}
    memory: bool = False
    source: Literal["kind", "own", "library"] = "kind"
    """Where the prompt is from: the kind's own, the agent's page, or the prompts."""
    prompt: int | None = None
    """The row, where it is from the prompts."""
    prompt_kind: str = ""
    words: PromptSpec | None = None
    """The prompt as it was; a row may have changed since."""
    uses: tuple[Use, ...] = ()


def definition_of(agent: Agent) -> Definition:
    """Return the draft of `agent` as it is now."""
    prompt = agent.prompt
    own = prompt is not None and is_own(prompt, agent)
    uses = AgentTool.objects.filter(agent=agent).select_related("tool", "sub_agent")
    return Definition(
        description=agent.description,
        kind=agent.kind,
        provider=agent.provider_id,
        model=agent.model,
        parameters=agent.parameters,
        executor=agent.executor,
        memory=agent.memory,
        source="kind" if prompt is None else "own" if own else "library",
        prompt=None if own else agent.prompt_id,
        prompt_kind=prompt.kind if prompt else "",
        words=prompt_spec_of(prompt) if prompt else None,
        uses=tuple(
            Use(
                tool=use.tool_id,
                sub_agent=use.sub_agent_id,
                name=str(use.tool or use.sub_agent),
                policy=use.policy,
                overrides=use.overrides,
            )
            for use in uses
        ),
    )


def definition_of_version(version: AgentVersion) -> Definition:
    """Return what `version` was made from; of an old one, what its spec tells."""
    if version.definition is not None:
        return Definition.model_validate(version.definition)
    return _from_spec(spec_of(version.spec), version.agent)


def remembers(agent: Agent, version: AgentVersion | None) -> bool:
    """Whether earlier turns reach the model: as published, or as the draft says."""
    if version is None or version.definition is None:
        return agent.memory
    return bool(version.definition.get("memory", False))


def described_as(agent: Agent, version: AgentVersion | None) -> str:
    """Return what the agent says it does: as published, or as the draft says."""
    if version is None or version.definition is None:
        return agent.description
    return str(version.definition.get("description", ""))


def _from_spec(spec: AgentSpec, agent: Agent) -> Definition:
    """Read a version that was published before definitions were kept."""
    return Definition(
        description=agent.description,
        kind=spec.kind,
        provider=spec.model.provider_id or agent.provider_id,
        model=spec.model.model,
        parameters=spec.model.parameters,
        executor=spec.executor.model_dump(mode="json", exclude_defaults=True),
        memory=agent.memory,
        source="kind" if spec.prompt is None else "own",
        prompt_kind=spec.kind,
        words=spec.prompt,
        uses=tuple(
            Use(
                tool=tool.tool_id,
                name=tool.name,
                policy="ask" if tool.asks else "allow",
            )
            for tool in spec.tools
            if tool.tool_id is not None
        ),
    )
