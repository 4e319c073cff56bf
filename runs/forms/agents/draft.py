"""What a form with an agent's draft describes, as far as its fields are valid."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runs.engine.kinds.registry import AGENT_KINDS
from runs.engine.types import AgentSpec, ExecutorOptions, ModelSettings, PromptSpec
from runs.forms.agents.options import OPTION_OF_FIELD, change_options
from runs.forms.agents.tool_choices import ToolChoice
from runs.models import Agent
from runs.services.spec.freeze import build_agent_tool_spec, build_prompt_spec
from runs.services.spec.inline_prompt import build_prompt_with_instructions
from tools.definition.freeze import freeze_tool
from tools.definition.tool_names import prefix_colliding_names
from tools.models import Tool
from tools.spec import ToolSpec

OWN_PARAMETERS = ("temperature", "max_tokens")
"""Parameters with their own field; the others are entered as JSON."""


@dataclass(frozen=True)
class AgentDraft:
    """The cleaned values of a form; values that are missing keep the stored ones."""

    agent: Agent
    """The stored agent, or a new one."""
    given: Mapping[str, Any]
    """Cleaned values."""
    kept: frozenset[str]
    """Fields that keep their stored values: invalid ones, and those not shown."""
    kind: str
    instructions: str | None
    """None if the prompt is from the library."""
    tools: list[ToolChoice]

    def build_spec(self) -> AgentSpec:
        provider = self.given.get("provider")
        return AgentSpec(
            kind=self.kind if self.kind in AGENT_KINDS else "tool-calling",
            name=str(self.given.get("name") or ""),
            prompt=self._build_prompt(),
            model=ModelSettings(
                model=str(self.given.get("model") or ""),
                provider=provider.slug if provider else "",
                parameters=self.build_parameters(),
            ),
            tools=prefix_colliding_names(
                [
                    build_spec_of_choice(choice)
                    for choice in self.tools
                    if choice.policy not in {"off", "deny"}
                ]
            ),
            executor=self.build_options(),
        )

    def _build_prompt(self) -> PromptSpec | None:
        if self.instructions is None:
            chosen = self.given.get("prompt")
            return build_prompt_spec(chosen) if chosen else None
        if self.kind not in AGENT_KINDS or not self.instructions.strip():
            return None
        return build_prompt_with_instructions(AGENT_KINDS[self.kind], self.instructions)

    def build_parameters(self) -> dict[str, Any]:
        stored, more = self.agent.parameters, self.given.get("more")
        found = dict(more) if isinstance(more, dict) else {}
        if "more" in self.kept:
            found = {k: v for k, v in stored.items() if k not in OWN_PARAMETERS}
        for name in OWN_PARAMETERS:
            values = stored if name in self.kept else self.given
            if values.get(name) is not None:
                found[name] = values[name]
        return found

    def build_options(self) -> ExecutorOptions:
        stored = ExecutorOptions.model_validate(self.agent.executor)
        return change_options(
            stored, self.given, keep=self.kept & OPTION_OF_FIELD.keys()
        )


def build_spec_of_choice(choice: ToolChoice) -> ToolSpec:
    if isinstance(choice.callee, Tool):
        return freeze_tool(
            choice.callee, policy=choice.policy, overrides=choice.overrides
        )
    return build_agent_tool_spec(
        choice.callee, policy=choice.policy, overrides=choice.overrides
    )
