"""The agents that use something, as far as a user may see them."""

from typing import NamedTuple

from django.contrib.auth.models import User

from runs.models import Agent, PromptTemplate, Provider

MAX_LISTED_AGENTS = 20


class UsingAgents(NamedTuple):
    agents: list[Agent]
    """Those that the user may see."""
    total: int
    hidden: int
    """How many of them are private agents of others."""


def list_using_agents(
    used: PromptTemplate | Provider | Agent, user: User
) -> UsingAgents:
    rows = Agent.objects.filter(archived_at=None)
    if isinstance(used, Provider):
        rows = rows.filter(provider=used)
    elif isinstance(used, Agent):
        rows = rows.filter(uses__sub_agent=used)
    else:
        rows = rows.filter(prompt=used)
    visible, total = rows.visible_to(user), rows.count()
    return UsingAgents(
        list(visible.order_by("name")[:MAX_LISTED_AGENTS]),
        total,
        total - visible.count(),
    )
