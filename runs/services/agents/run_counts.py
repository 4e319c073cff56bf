"""How many runs each agent has had, without reading them."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db.models import Count, OuterRef, Subquery, Sum

from runs.models import Agent, Run, RunStatsDay
from runs.services.search.slot_figures import ALL_OUTCOMES, get_slots_owner


class AgentRuns(NamedTuple):
    """The real runs of an agent that a user sees, with those that runs started."""

    total: int
    last_start: datetime | None


def count_agent_runs(agents: Collection[int], user: User) -> dict[int, AgentRuns]:
    """Return the runs of each agent that has any.

    Ended runs are counted by day; others are few. The latest run is looked up only
    for agents that have one, where an index finds it at once.
    """
    days = RunStatsDay.objects.order_by().filter(
        owner_number=get_slots_owner(user), agent_number__in=agents, is_test=False
    )
    counts = dict(days.values_list("agent_number").annotate(runs=Sum(ALL_OUTCOMES)))
    visible = Run.objects.visible_to(user).filter(is_test=False)
    pending = visible.filter(agent__in=agents, indexed=False, search_row=None)
    for agent, count in (
        pending.order_by().values_list("agent").annotate(Count("pk", distinct=True))
    ):
        counts[agent] = counts.get(agent, 0) + count
    having = [agent for agent, count in counts.items() if count]
    newest = visible.filter(agent=OuterRef("pk")).order_by("-pk")
    starts = Agent.objects.filter(pk__in=having).annotate(
        last_start=Subquery(newest.values("created_at")[:1])
    )
    return {
        agent: AgentRuns(counts[agent], start)
        for agent, start in starts.values_list("pk", "last_start")
    }
