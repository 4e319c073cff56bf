"""Agents that would call themselves are refused when they are saved."""

import pytest

from runs.models import Agent, AgentTool
from runs.services.agents.call_graph import find_cycle
from runs.services.agents.save import ToolAssignment, save_agent
from runs.services.errors import AgentCycle
from tests.make import make_agent, make_user

pytestmark = pytest.mark.django_db


def chain(*names: str) -> list[Agent]:
    """Make agents of which each calls the next."""
    owner = make_user("ann")
    agents = [make_agent(owner, name=name) for name in names]
    for caller, called in zip(agents, agents[1:], strict=False):
        AgentTool.objects.create(agent=caller, sub_agent=called)
    return agents


def test_names_the_way_back():
    a, _, c = chain("A", "B", "C")

    assert find_cycle(c, [a.pk]) == ("C", "A", "B", "C")
    assert find_cycle(c, [c.pk]) == ("C", "C")


def test_the_same_agent_on_two_ways_is_no_circle():
    a, b, c = chain("A", "B", "C")
    AgentTool.objects.create(agent=a, sub_agent=c)

    assert find_cycle(a, [b.pk, c.pk]) == ()
    assert find_cycle(Agent(), [a.pk]) == ()


def test_an_old_circle_elsewhere_is_no_reason():
    a, b = chain("A", "B")
    AgentTool.objects.create(agent=b, sub_agent=a)
    (c,) = chain("C")

    assert find_cycle(c, [a.pk]) == ()


def test_saving_refuses_a_circle_and_changes_nothing():
    a, b = chain("A", "B")
    b.name = "B2"

    with pytest.raises(AgentCycle, match="B → A → B"):
        save_agent(b, uses=[ToolAssignment(None, "ask", a.pk)], instructions="")

    assert Agent.objects.get(pk=b.pk).name == "B"
    assert not b.uses.exists()


def test_saving_keeps_tools_and_agents_apart():
    a, b = chain("A", "B")
    c = make_agent(a.owner)

    save_agent(
        a,
        uses=[ToolAssignment(None, "ask", c.pk), ToolAssignment(None, "allow", b.pk)],
        instructions="",
    )
    save_agent(a, uses=[ToolAssignment(None, "deny", b.pk)], instructions="")

    assert [(u.sub_agent, u.policy) for u in a.uses.all()] == [(b, "deny")]
