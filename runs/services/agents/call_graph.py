"""Which agents call which: an agent must not call itself."""

from collections.abc import Iterable

from django.contrib.auth.models import User

from runs.models import Agent, AgentTool
from runs.models.agents import AgentQuerySet
from runs.services.errors import AgentCycle


def refuse_cycle(agent: Agent, sub_agents: Iterable[int]) -> None:
    """Raise `AgentCycle` if `agent` would call itself."""
    names = find_cycle(agent, sub_agents)
    if names:
        raise AgentCycle(names)


def find_cycle(agent: Agent, sub_agents: Iterable[int]) -> tuple[str, ...]:
    """Return the names of agents on the path back to `agent`; empty without a cycle.

    `sub_agents` are the agents it is going to call. Denied ones count, because one
    click allows them.
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


def find_calling_agents(agent: Agent) -> set[int]:
    """Return the ids of all agents that call `agent`, at any depth, and its own."""
    found = {agent.pk}
    fresh = found
    while fresh:
        rows = AgentTool.objects.filter(sub_agent__in=fresh)
        fresh = set(rows.values_list("agent_id", flat=True)) - found
        found = found | fresh
    return found


def find_callable_agents(agent: Agent, user: User) -> AgentQuerySet:
    """Return agents that `user` and the owner of `agent` may use, without cycles."""
    theirs = Agent.objects.usable_by(agent.owner).values("pk")
    mine = Agent.objects.usable_by(user).filter(pk__in=theirs)
    return mine.exclude(pk__in=find_calling_agents(agent)).order_by("name")
