"""Freeze an agent: everything a run needs, as one immutable spec without secrets."""

from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet

from runs.engine.kinds.registry import get_prompt_of_spec
from runs.engine.prompts import input_variables_of_prompt
from runs.engine.spec_validation import find_spec_problems
from runs.engine.types import (
    AgentSpec,
    ExecutorOptions,
    ModelSettings,
    Prices,
    PromptMessage,
    PromptSpec,
)
from runs.models import Agent, AgentTool, AgentVersion, PromptTemplate, ProviderModel
from runs.services.errors import FieldError, SpecRefused
from runs.store.specs import load_spec
from tools.definition.freeze import freeze_tool
from tools.definition.overrides import parse_overrides
from tools.definition.tool_names import prefix_colliding_names
from tools.spec import ToolSpec

AGENT_KIND = "agent"
"""Kind of a tool that is another agent; its call is a child run."""
MAX_TOOL_NAME_LENGTH = 64
"""Maximum length of a tool's name; a slug may be longer."""


def freeze_agent(agent: Agent, *, uses: Iterable[AgentTool] | None = None) -> AgentSpec:
    """Return the spec of `agent` now: prompt, model settings, tools and limits.

    `uses` replaces its tools.
    """
    settings = ModelSettings(
        model=agent.model,
        provider=agent.provider.slug,
        provider_id=agent.provider_id,
        parameters=agent.parameters,
        stream=agent.provider.stream,
    )
    spec = AgentSpec(
        kind=agent.kind,
        name=agent.name,
        slug=agent.slug,
        prompt=build_prompt_spec(agent.prompt) if agent.prompt else None,
        tools=freeze_uses(select_uses(agent) if uses is None else uses),
        executor=ExecutorOptions.model_validate(agent.executor),
    )
    return use_model(spec, settings)


def use_model(spec: AgentSpec, settings: ModelSettings) -> AgentSpec:
    """Return `spec` with a model, its prices, and the media it takes."""
    listed = find_provider_model(settings)
    media = {
        "images": listed is not None and listed.images is True,
        "audio": listed is not None and listed.is_audio_sent,
    }
    model = settings.model_copy(update=media)
    return spec.model_copy(update={"model": model, "prices": build_prices(listed)})


def build_prompt_spec(prompt: PromptTemplate) -> PromptSpec:
    if prompt.messages:
        messages = tuple(PromptMessage.model_validate(row) for row in prompt.messages)
        return PromptSpec(messages=messages, partials=prompt.partials)
    return PromptSpec(template=prompt.template, partials=prompt.partials)


def validate_spec(spec: AgentSpec) -> None:
    """Raise `SpecRefused` if a run of `spec` would fail before its first call."""
    problems = find_spec_problems(spec)
    if problems:
        raise SpecRefused(FieldError(p.field, p.message) for p in problems)


def variables_of_spec(spec: AgentSpec) -> tuple[str, ...]:
    """Return the inputs of a run of `spec`; `input` comes first."""
    names = input_variables_of_prompt(get_prompt_of_spec(spec))
    return tuple(sorted(names, key=lambda name: name != "input"))


def variables_of_agent(
    agent: Agent, version: AgentVersion | None = None
) -> tuple[str, ...]:
    """Return the inputs of a run of the version, or else of the draft."""
    spec = load_spec(version.spec) if version else freeze_agent(agent, uses=())
    return variables_of_spec(spec)


def select_uses(agent: Agent) -> QuerySet[AgentTool]:
    uses = AgentTool.objects.filter(agent=agent)
    return uses.select_related("tool", "sub_agent__prompt")


def freeze_uses(uses: Iterable[AgentTool]) -> tuple[ToolSpec, ...]:
    """Return the specs of tools and agents that an agent uses, as they are now."""
    allowed = (use for use in uses if use.policy != AgentTool.Policy.DENY)
    specs = [spec for use in allowed if (spec := _build_tool_spec(use)) is not None]
    return prefix_colliding_names(specs)


def _build_tool_spec(use: AgentTool) -> ToolSpec | None:
    if use.tool is not None:
        return freeze_tool(use.tool, policy=use.policy, overrides=use.overrides)
    if use.sub_agent is not None:
        return build_agent_tool_spec(
            use.sub_agent, policy=use.policy, overrides=use.overrides
        )
    return None


DEFAULT_AGENT_DESCRIPTION = "Asks the agent {name} and returns its answer."
"""What a model reads of an agent without a description."""


def build_agent_tool_spec(
    agent: Agent, *, policy: str = "default", overrides: dict[str, Any] | None = None
) -> ToolSpec:
    """Return `agent` as a tool of another agent, with the inputs of its runs.

    A call is a child run and may be repeated: the same step always finds the same
    child. Only the policy `ask` requires approval; inside the child, its own tools
    decide.
    """
    own = parse_overrides(overrides)
    return ToolSpec.model_validate(
        {
            "name": agent.slug[:MAX_TOOL_NAME_LENGTH],
            "description": agent.description
            or DEFAULT_AGENT_DESCRIPTION.format(name=agent.name),
            "args_schema": _build_args_schema(_get_input_names(agent)),
            "effect": "idempotent",
            "asks": policy == AgentTool.Policy.ASK,
            "kind": AGENT_KIND,
            "config": {"agent": agent.slug, "agent_id": agent.pk},
            "calls_per_run": own.calls_per_run,
            "output_limit": own.output_limit,
            **own.dump_set_fields(),
        }
    )


def _get_input_names(agent: Agent) -> tuple[str, ...]:
    """Return the inputs of what would run, without loading its tools."""
    version = agent.versions.select_related("spec").first()
    if version is not None:
        return variables_of_spec(load_spec(version.spec))
    prompt = build_prompt_spec(agent.prompt) if agent.prompt else None
    return variables_of_spec(AgentSpec(kind=agent.kind, prompt=prompt))


def _build_args_schema(names: tuple[str, ...]) -> dict[str, Any]:
    properties: dict[str, Any] = {name: {"type": "string"} for name in names}
    if names:
        properties[names[0]]["description"] = (
            "What the agent is to do, with everything it has to know: it sees nothing "
            "of this conversation."
        )
    return {"type": "object", "properties": properties, "required": list(names)}


def find_provider_model(model: ModelSettings) -> ProviderModel | None:
    found = ProviderModel.objects.filter(
        provider_id=model.provider_id or 0, name=model.model
    )
    return found.select_related("provider").first()


def get_model_prices(model: ModelSettings) -> Prices | None:
    """Return the prices of a model; None if nobody has entered any."""
    return build_prices(find_provider_model(model))


def build_prices(row: ProviderModel | None) -> Prices | None:
    if row is None or row.input_price is None:
        return None
    return Prices(
        input=float(row.input_price),
        cached_input=None if row.cached_price is None else float(row.cached_price),
        output=float(row.output_price or 0),
    )
