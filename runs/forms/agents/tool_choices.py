"""The tools on an agent's form, with the permission of each."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django.contrib.auth.models import User

from runs.models import Agent, AgentTool
from runs.services.agents.save import ToolAssignment
from tools.definition.freeze import is_approval_enforced
from tools.definition.overrides import parse_overrides, stricter_effect
from tools.models import Tool

FIELD_NAME = re.compile(r"(tool|agent)-([0-9]{1,15})")
OFF = "off"


class CalleeKey(NamedTuple):
    """A row of the table of tools or agents."""

    noun: str
    """tool or agent."""
    pk: int


class ToolChoice(NamedTuple):
    """A tool or agent of the library, and the permission this agent has for it."""

    callee: Tool | Agent
    policy: str
    """off, default, allow, ask or deny."""
    overrides: dict[str, Any] = {}
    """Stored overrides of this agent."""

    @property
    def is_agent(self) -> bool:
        return isinstance(self.callee, Agent)

    @property
    def name(self) -> str:
        """Name of the radio buttons."""
        return f"{'agent' if self.is_agent else 'tool'}-{self.callee.pk}"

    @property
    def title(self) -> str:
        """Name for the model."""
        return self.callee.slug if isinstance(self.callee, Agent) else self.callee.name

    @property
    def effect(self) -> str:
        """Effect of a call; empty for an agent, whose own tools decide."""
        if isinstance(self.callee, Agent):
            return ""
        return stricter_effect(
            self.callee.effect, parse_overrides(self.overrides).effect
        )

    @property
    def always_asks(self) -> bool:
        """Whether calls require approval even if the permission is Allow."""
        return isinstance(self.callee, Tool) and is_approval_enforced(
            self.callee, effect=self.effect
        )

    @property
    def is_on(self) -> bool:
        return self.policy != OFF

    @property
    def use(self) -> ToolAssignment:
        if self.is_agent:
            return ToolAssignment(None, self.policy, self.callee.pk)
        return ToolAssignment(self.callee.pk, self.policy)


def list_tool_choices(
    agent: Agent, user: User, typed: Mapping[str, Any] | None
) -> list[ToolChoice]:
    """Return all tools and agents that `user` may add, those in use first, by name.

    `typed` is the submitted form; None to show what is stored.
    """
    stored = stored_uses(agent)
    may = {
        "tool": Tool.objects.usable_by(user).select_related("mcp_server"),
        "agent": Agent.objects.usable_by(user).exclude(pk=agent.pk or 0),
    }
    models: dict[str, type[Tool] | type[Agent]] = {"tool": Tool, "agent": Agent}
    policies = (
        {key: use.policy for key, use in stored.items()}
        if typed is None
        else parse_policies(typed)
    )
    found = []
    for noun, rows in may.items():
        had = [key.pk for key in stored if key.noun == noun]
        things = rows | models[noun]._default_manager.filter(pk__in=had)  # type: ignore[operator]  # of one table
        for thing in things.distinct().order_by("name"):
            key = CalleeKey(noun, thing.pk)
            overrides = stored[key].overrides if key in stored else {}
            found.append(ToolChoice(thing, policies.get(key, OFF), overrides))
    return sorted(found, key=lambda choice: not choice.is_on)


def stored_uses(agent: Agent) -> dict[CalleeKey, AgentTool]:
    if not agent.pk:
        return {}
    return {
        CalleeKey("tool", use.tool_id)
        if use.tool_id
        else CalleeKey("agent", use.sub_agent_id or 0): use
        for use in agent.uses.all()
    }


def parse_policies(typed: Mapping[str, Any]) -> dict[CalleeKey, str]:
    """Parse `tool-7=ask` and `agent-3=allow`; ignore anything else."""
    known = dict(AgentTool.Policy.choices)
    return {
        CalleeKey(match[1], int(match[2])): value
        for name, value in typed.items()
        if (match := FIELD_NAME.fullmatch(name)) and value in known
    }


def selected_tool_uses(choices: Iterable[ToolChoice]) -> list[ToolAssignment]:
    return [choice.use for choice in choices if choice.is_on]
