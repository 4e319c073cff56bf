"""Which agents a person may let another agent call."""

from django.contrib.auth.models import User

from runs.models import Agent
from runs.models.agents import AgentQuerySet
from runs.services.find_circle import callers_of


def callable_agents(agent: Agent, user: User) -> AgentQuerySet:
    """Return what both `user` and the owner of `agent` may use, without a circle."""
    theirs = Agent.objects.usable_by(agent.owner).values("pk")
    mine = Agent.objects.usable_by(user).filter(pk__in=theirs)
    return mine.exclude(pk__in=callers_of(agent)).order_by("name")
