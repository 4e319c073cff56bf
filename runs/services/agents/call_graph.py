"""Agents that would call themselves: directly, or through the agents they call."""

from collections.abc import Iterable

from runs.models import Agent, AgentTool
from runs.services.errors import AgentCircle


def refuse_circle(agent: Agent, sub_agents: Iterable[int]) -> None:
    """Raise `AgentCircle` where `agent` would come to call itself."""
    names = circle_of(agent, sub_agents)
    if names:
        raise AgentCircle(names)


def circle_of(agent: Agent, sub_agents: Iterable[int]) -> tuple[str, ...]:
    """Return the agents' names on the way back to `agent`; empty where there is none.

    `sub_agents` are what it is going to call. Denied ones count: a click allows them.
    """
    if agent.pk is None:
        return ()
    came_from: dict[int, int] = dict.fromkeys(sub_agents, agent.pk)
    fresh = set(came_from)
    while fresh and agent.pk not in came_from:
        uses = AgentTool.objects.filter(agent__in=fresh, sub_agent__isnull=False)
        pairs = uses.values_list("agent_id", "sub_agent_id")
        found = {sub: user for user, sub in pairs if sub and sub not in came_from}
        came_from |= found
        fresh = set(found)
    if agent.pk not in came_from:
        return ()
    way = [agent.pk]
    while len(way) == 1 or way[-1] != agent.pk:
        way.append(came_from[way[-1]])
    names = dict(Agent.objects.filter(pk__in=way).values_list("pk", "name"))
    return tuple(names[pk] for pk in reversed(way))


def callers_of(agent: Agent) -> set[int]:
    """Return the ids of all agents that call `agent`, at any depth, itself included."""
    found = {agent.pk}
    fresh = found
    while fresh:
        rows = AgentTool.objects.filter(sub_agent__in=fresh)
        fresh = set(rows.values_list("agent_id", flat=True)) - found
        found = found | fresh
    return found
