"""The tools on an agent's form: the library, and what the agent may do with each."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django.contrib.auth.models import User

from runs.models import Agent, AgentTool
from runs.services.save_agent import ToolUse
from tools.models import Tool
from tools.overrides import read_overrides, stricter
from tools.services.tool_spec_of import must_ask

FIELD = re.compile(r"(tool|agent)-([0-9]{1,15})")
OFF = "off"


class Key(NamedTuple):
    """Which row of which table."""

    noun: str
    """tool or agent."""
    pk: int


class ToolChoice(NamedTuple):
    """One tool, or other agent, of the library, and what this agent may do with it."""

    thing: Tool | Agent
    policy: str
    """off, default, allow, ask or deny."""
    overrides: dict[str, Any] = {}
    """What this agent sees otherwise, as stored."""

    @property
    def is_agent(self) -> bool:
        """Whether it is another agent."""
        return isinstance(self.thing, Agent)

    @property
    def name(self) -> str:
        """Name of the radio buttons."""
        return f"{'agent' if self.is_agent else 'tool'}-{self.thing.pk}"

    @property
    def title(self) -> str:
        """What the model calls it."""
        return self.thing.slug if isinstance(self.thing, Agent) else self.thing.name

    @property
    def effect(self) -> str:
        """What calling it may change; an agent's own tools say that themselves."""
        if isinstance(self.thing, Agent):
            return ""
        return stricter(self.thing.effect, read_overrides(self.overrides).effect)

    @property
    def insists(self) -> bool:
        """Whether it asks a person even where this agent may call it at once."""
        return isinstance(self.thing, Tool) and must_ask(self.thing, effect=self.effect)

    @property
    def is_on(self) -> bool:
        """Whether the agent has it."""
        return self.policy != OFF

    @property
    def use(self) -> ToolUse:
        """What to store."""
        if self.is_agent:
            return ToolUse(None, self.policy, self.thing.pk)
        return ToolUse(self.thing.pk, self.policy)


def choices_of(
    agent: Agent, user: User, typed: Mapping[str, Any] | None
) -> list[ToolChoice]:
    """Return all one may give to `agent`, in the order of their names, in use first.

    `typed` is what a form sent, None where it shows what is stored.
    """
    stored = stored_uses(agent)
    may = {
        "tool": Tool.objects.usable_by(user),
        "agent": Agent.objects.usable_by(user).exclude(pk=agent.pk or 0),
    }
    models: dict[str, type[Tool] | type[Agent]] = {"tool": Tool, "agent": Agent}
    policies = (
        {key: use.policy for key, use in stored.items()}
        if typed is None
        else typed_policies(typed)
    )
    found = []
    for noun, rows in may.items():
        had = [key.pk for key in stored if key.noun == noun]
        things = rows | models[noun]._default_manager.filter(pk__in=had)  # type: ignore[operator]  # of one table
        for thing in things.distinct().order_by("name"):
            key = Key(noun, thing.pk)
            overrides = stored[key].overrides if key in stored else {}
            found.append(ToolChoice(thing, policies.get(key, OFF), overrides))
    return sorted(found, key=lambda choice: not choice.is_on)


def stored_uses(agent: Agent) -> dict[Key, AgentTool]:
    """Return what the agent has."""
    if not agent.pk:
        return {}
    return {
        Key("tool", use.tool_id)
        if use.tool_id
        else Key("agent", use.sub_agent_id or 0): use
        for use in agent.uses.all()
    }


def typed_policies(typed: Mapping[str, Any]) -> dict[Key, str]:
    """Read `tool-7=ask` and `agent-3=allow`; nonsense is left out."""
    known = dict(AgentTool.Policy.choices)
    return {
        Key(match[1], int(match[2])): value
        for name, value in typed.items()
        if (match := FIELD.fullmatch(name)) and value in known
    }


def uses_of(choices: Iterable[ToolChoice]) -> list[ToolUse]:
    """Return what to store."""
    return [choice.use for choice in choices if choice.is_on]
