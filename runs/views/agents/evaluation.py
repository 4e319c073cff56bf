"""The page of an agent's evaluation: gate, versions, experiments, rules."""

from typing import NamedTuple

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest
from runs.models import Agent, Experiment, ScoringRule
from runs.services.experiments.version_rates import (
    DatasetRates,
    VersionRate,
    load_version_rates,
)
from runs.services.gates.state import get_gate
from runs.services.rules.figures import (
    VersionScores,
    load_scores_by_day,
    load_scores_by_version,
)
from runs.ui.evaluation.day_bars import DayChart, build_day_chart
from runs.views.experiments.page import describe_result

MAX_EXPERIMENTS = 10
MAX_VERSIONS = 30
"""Of a chart, the newest."""


class ChartPoint(NamedTuple):
    """A version in a chart; places are in percent, from the left and from above."""

    version: VersionRate
    x: str
    y: str


class ChartLine(NamedTuple):
    """The line from a version to the next one."""

    start: ChartPoint
    end: ChartPoint


class VersionChart(NamedTuple):
    """The pass rates of the versions on the examples of a dataset."""

    rates: DatasetRates
    points: list[ChartPoint]
    lines: list[ChartLine]


class RuleCharts(NamedTuple):
    """A rule with its scores by day and by version."""

    rule: ScoringRule
    days: DayChart
    versions: list[VersionScores]


@require_GET
def agent_evaluation(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the gate, pass rates by version, the last experiments, and the rules."""
    agents = Agent.objects.visible_to(request.user).filter(is_playground=False)
    agent = get_object_or_404(agents, pk=pk)
    rules = ScoringRule.objects.visible_to(request.user).filter(agent=agent)
    experiments = (
        Experiment.objects.visible_to(request.user)
        .filter(candidates__agent=agent, bisection=None)
        .distinct()
    )
    shown = experiments.select_related("dataset").prefetch_related("candidates")
    rates = load_version_rates(agent, request.user)
    may_edit = Agent.objects.editable_by(request.user).filter(pk=agent.pk).exists()
    context = {
        "agent": agent,
        "may_edit": may_edit,
        "gate": get_gate(agent) if may_edit else None,
        "charts": [build_version_chart(one) for one in rates if one.versions],
        "experiments": [
            (one, describe_result(one, None))
            for one in shown.order_by("-pk")[:MAX_EXPERIMENTS]
        ],
        "rules": [
            RuleCharts(
                rule,
                build_day_chart(load_scores_by_day(rule.scored.all())),
                load_scores_by_version(rule),
            )
            for rule in rules
        ],
    }
    return render(request, "agents/evaluation.html", context)


def build_version_chart(rates: DatasetRates) -> VersionChart:
    """Return the chart of a dataset: a point for each version, and lines between."""
    versions = rates.versions[-MAX_VERSIONS:]
    points = [
        ChartPoint(
            one,
            f"{100 * (place + 0.5) / len(versions):.2f}%",
            f"{100 * (1 - one.rate):.2f}%",
        )
        for place, one in enumerate(versions)
    ]
    lines = [ChartLine(a, b) for a, b in zip(points[:-1], points[1:], strict=True)]
    return VersionChart(rates, points, lines)
