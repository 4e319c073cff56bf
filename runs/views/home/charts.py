"""The charts of the home page, each bar a link to the runs that it counts."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC
from decimal import Decimal
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db.models import Count, Max, QuerySet, Sum
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.models import Agent, Run, ScoringRule
from runs.services.rules.figures import AgentScores, load_scores_by_agent
from runs.services.search.slot_figures import AgentModelSums, RunSums
from runs.ui.error_labels import get_error_label
from runs.ui.format import (
    format_number,
    format_short_number,
    money,
    number,
    percent_of,
)
from runs.views.charts.chart import round_up_axis
from runs.views.charts.time_bars import (
    BarContent,
    TimeBars,
    lay_out_time_bars,
    stack_parts,
)
from runs.views.home.key_figures import build_usage_query
from runs.views.home.period import HomePeriod
from tools.models import Tool, ToolUsage

MAX_BARS = 5
MAX_AGENTS = 6
MIN_HEIGHT = 0.8
"""Percent, so that one failure among thousands is seen."""
WEAK_RATE = 0.9
"""Success rates below are red."""
STACK = (
    ("c-bad", "failed"),
    ("c-stop", "limit_reached"),
    ("c-live", "pending"),
    ("c-mute", "rest"),
)
"""From the top of a bar; the rest succeeded or was canceled."""


class RunChart(NamedTuple):
    plot: TimeBars
    failed: int
    limit_reached: int
    pending: int


class WorstFailure(NamedTuple):
    """The most frequent error of the hour or day with the most failures."""

    when: str
    label: str
    failures: int
    query: str


def build_run_chart(period: HomePeriod, by_mark: Sequence[RunSums]) -> RunChart:
    top = round_up_axis(max(sums.total for sums in by_mark), unit=1)
    contents = [
        BarContent(
            period.to_bar_query(place),
            when := period.describe_mark(place),
            describe_activity_bar(when, sums),
            stack_parts(compute_status_heights(sums, top)),
        )
        for place, sums in enumerate(by_mark)
    ]
    ticks = [format_short_number(top * part) for part in (1, 0.5, 0)]
    return RunChart(
        lay_out_time_bars(contents, ticks),
        failed=sum(sums.failed for sums in by_mark),
        limit_reached=sum(sums.limit_reached for sums in by_mark),
        pending=sum(sums.pending for sums in by_mark),
    )


def compute_status_heights(sums: RunSums, top: float) -> Iterator[tuple[str, float]]:
    """Yield class and height of the pieces of a bar, from below."""
    counts = {
        "failed": sums.failed,
        "limit_reached": sums.limit_reached,
        "pending": sums.pending,
        "rest": sums.succeeded + sums.canceled,
    }
    for css_class, name in reversed(STACK):
        if counts[name]:
            yield css_class, max(MIN_HEIGHT, 100 * counts[name] / top)


def describe_activity_bar(when: str, sums: RunSums) -> str:
    """Say how many runs there were, and how many of them failed."""
    runs = ngettext("%(count)s run", "%(count)s runs", sums.total)
    facts = [runs % {"count": number(sums.total)}]
    for text, count in (
        (ngettext("%(count)s failed", "%(count)s failed", sums.failed), sums.failed),
        (
            ngettext(
                "%(count)s reached a limit",
                "%(count)s reached a limit",
                sums.limit_reached,
            ),
            sums.limit_reached,
        ),
        (
            ngettext("%(count)s unfinished", "%(count)s unfinished", sums.pending),
            sums.pending,
        ),
    ):
        if count:
            facts.append(text % {"count": number(count)})
    return f"{when}: {', '.join(facts)}"


def find_worst_failure(
    period: HomePeriod, by_mark: Sequence[RunSums], runs: QuerySet[Run]
) -> WorstFailure | None:
    """Return the most frequent error of the worst hour or day; None without any."""
    place = max(range(len(by_mark)), key=lambda n: by_mark[n].failed)
    if not by_mark[place].failed:
        return None
    begin = period.marks[place]
    end = period.marks[place + 1] if place + 1 < len(period.marks) else period.end
    failed = runs.filter(status="failed", created_at__gte=begin, parent_step=None)
    if end is not None:
        failed = failed.filter(created_at__lt=end)
    counted = failed.order_by().values_list("error_code").annotate(n=Count("pk"))
    found = counted.order_by("-n", "error_code").first()
    if found is None:  # retention has deleted them
        return None
    code, count = found
    query = period.to_bar_query(place, status="failed", error=code)
    return WorstFailure(
        period.describe_mark(place), get_error_label(code), count, query
    )


class RankedBar(NamedTuple):
    """A horizontal bar with its share."""

    name: str
    query: str
    """Of the list of runs; empty if no filter has them."""
    width: str
    """Percent of the longest."""
    value: str
    share: str


def rank_models(
    period: HomePeriod, sums: Iterable[AgentModelSums], *, by_cost: bool
) -> list[RankedBar]:
    """Return the models by cost, or by tokens if nothing has a price."""
    amounts: dict[str, Decimal] = defaultdict(Decimal)
    for row in sums:
        amounts[row.model] += row.cost if by_cost else row.tokens
    whole = sum(amounts.values())
    ranked = sorted(amounts.items(), key=lambda pair: (-pair[1], pair[0]))
    most = [pair for pair in ranked if pair[1] > 0][:MAX_BARS]
    return [
        RankedBar(
            model or _("Unknown model"),
            build_usage_query(period, "cost" if by_cost else "tokens", model=model)
            if model
            else "",
            f"{max(1, 100 * amount / most[0][1]):.1f}",
            money(float(amount)) if by_cost else number(int(amount), "short"),
            f"{format_number(round(100 * amount / whole))}%",
        )
        for model, amount in most
    ]


def rank_failing_tools(period: HomePeriod, user: User) -> list[RankedBar]:
    """Return the tools with the most failed calls.

    Their calls are counted by the hour: in a zone with a fraction of an hour, the
    period begins up to 45 minutes early.
    """
    begin = period.begin.astimezone(UTC).replace(minute=0)
    usage = ToolUsage.objects.filter(
        hour__gte=begin, tool__in=Tool.objects.visible_to(user)
    )
    if period.end is not None:
        usage = usage.filter(hour__lt=period.end)
    rows = usage.order_by().values_list("tool__name")
    failing = rows.filter(failures__gt=0).annotate(failed=Sum("failures"))
    worst = list(failing.order_by("-failed", "tool__name")[:MAX_BARS])
    names = [name for name, _failed in worst]
    calls = dict(rows.filter(tool__name__in=names).annotate(Sum("calls")))
    return [
        RankedBar(
            name,
            period.to_list_query(failed_tool=name, tests="with", children="1"),
            f"{max(1, 100 * failed / worst[0][1]):.1f}",
            number(failed),
            percent_of(failed, calls[name]),
        )
        for name, failed in worst
    ]


class AgentFigures(NamedTuple):
    agent: Agent
    query: str
    runs: int
    success: str
    is_weak: bool
    cost: Decimal
    scores: AgentScores | None


def rank_agents(
    period: HomePeriod,
    sums: Mapping[int, AgentModelSums],
    *,
    user: User,
    rules: QuerySet[ScoringRule],
) -> list[AgentFigures]:
    """Return the busiest agents that the user may see and that are not deleted.

    Their scores are those of `rules`.
    """
    active = [pk for pk, one in sums.items() if one.runs]
    agents = Agent.objects.visible_to(user).filter(is_playground=False)
    found = agents.annotate(newest=Max("versions__number")).in_bulk(active)
    busiest = sorted(found, key=lambda pk: (-sums[pk].runs, found[pk].name))
    shown = busiest[:MAX_AGENTS]
    scores = load_scores_by_agent(rules, shown, period.begin, period.end)
    return [
        _describe_agent(period, found[pk], sums[pk], scores.get(pk)) for pk in shown
    ]


def _describe_agent(
    period: HomePeriod, agent: Agent, sums: AgentModelSums, scores: AgentScores | None
) -> AgentFigures:
    rate = sums.succeeded / sums.ended if sums.ended else None
    return AgentFigures(
        agent,
        period.to_list_query(agent=str(agent.pk)),
        sums.runs,
        "" if rate is None else f"{format_number(100 * rate, places=1)}%",
        rate is not None and rate < WEAK_RATE,
        sums.cost,
        scores,
    )
