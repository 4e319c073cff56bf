"""How each version of an agent has done: success, cost, time and ratings."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from runs.evaluation.statistics import percentile
from runs.models import Agent, Run
from runs.models.runs import FINISHED_STATUSES
from runs.services.search.human_waits import load_human_waits

MAX_COUNTED_RUNS = 2_000
"""Of an agent, the latest: the figures cost the same however many runs it has had."""


class VersionFigures(NamedTuple):
    """What the latest runs of one version add up to; tests and canceled runs apart."""

    number: int | None
    """None for runs of the draft."""
    runs: int
    succeeded: int
    mean_cost: Decimal
    p95: float | None
    """Seconds, without waiting for people."""
    good: int
    """Runs that people rated as good."""
    rated: int


class RunFacts(NamedTuple):
    """The columns of a run that count."""

    pk: int
    number: int | None
    status: str
    cost: Decimal
    rating: int | None
    started_at: datetime | None
    ended_at: datetime


def load_version_figures(agent: Agent) -> list[VersionFigures]:
    """Return the figures of the versions that have run lately, the newest first."""
    rows = Run.objects.filter(
        agent=agent, is_test=False, status__in=FINISHED_STATUSES
    ).exclude(status=Run.Status.CANCELED)
    latest = rows.order_by("-pk").values_list(
        *("pk", "version__number", "status", "cost", "rating"),
        *("started_at", "ended_at"),
    )
    facts = [RunFacts(*row) for row in latest[:MAX_COUNTED_RUNS]]
    waits = load_human_waits([one.pk for one in facts])
    by_version: dict[int | None, list[RunFacts]] = defaultdict(list)
    for one in facts:
        by_version[one.number].append(one)
    figures = [sum_run_facts(runs, waits) for runs in by_version.values()]
    return sorted(figures, key=lambda one: one.number or 0, reverse=True)


def sum_run_facts(runs: list[RunFacts], waits: Mapping[int, float]) -> VersionFigures:
    """Add up runs of one version; `waits` are the seconds they waited for people."""
    seconds = [
        (one.ended_at - one.started_at).total_seconds() - waits.get(one.pk, 0.0)
        for one in runs
        if one.started_at
    ]
    ratings = [one.rating for one in runs if one.rating]
    return VersionFigures(
        number=runs[0].number,
        runs=len(runs),
        succeeded=sum(one.status == Run.Status.SUCCEEDED for one in runs),
        mean_cost=sum((one.cost for one in runs), Decimal()) / len(runs),
        p95=percentile(seconds, 0.95),
        good=ratings.count(1),
        rated=len(ratings),
    )
