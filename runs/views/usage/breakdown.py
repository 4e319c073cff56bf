"""Usage by agent, person and model: tables, and a stacked bar for each hour or day."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import reduce
from operator import add
from typing import NamedTuple

from django.contrib.auth.models import User
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.models import Agent
from runs.services.search.slot_figures import (
    UsageColumn,
    UsageSums,
    sum_usage,
    sum_usage_by_time,
)
from runs.ui.format import format_number, money, number
from runs.views.charts.chart import round_up_axis
from runs.views.charts.time_bars import (
    BarContent,
    TimeBars,
    lay_out_time_bars,
    stack_parts,
)
from runs.views.home.period import HomePeriod
from tools.accounts.person_name import get_person_name

MAX_ROWS = 20
"""Of a table; the export has all."""
STACKED = 4
"""Rows with a color of their own in the chart; the others share one."""
OTHERS = "u5"
SMALLEST_UNIT = 0.0001
"""Of the axis, in dollars."""


class Breakdown(NamedTuple):
    column: UsageColumn
    label: str | Promise
    filter_name: str
    """Of the list of runs."""


BREAKDOWNS = {
    "agent": Breakdown("agent_number", gettext_lazy("Agent"), "agent"),
    "person": Breakdown("owner_number", gettext_lazy("Person"), "user"),
    "model": Breakdown("model", gettext_lazy("Model"), "model"),
}


class UsageRow(NamedTuple):
    """An agent, a person or a model."""

    key: int | str
    name: str
    query: str
    """Of the list of runs."""
    sums: UsageSums
    share: str
    width: str
    """Percent of the largest."""
    change: str
    """Since as much time before; empty if it used nothing then."""
    has_risen: bool


class UsageTable(NamedTuple):
    """The agents, people or models with the largest usage."""

    by: str
    label: str | Promise
    rows: list[UsageRow]
    hidden: int
    """Rows that only the export has."""


class UsageLine(NamedTuple):
    """A line of the export."""

    begin: datetime
    """Of the hour or day, in the viewer's zone."""
    key: int | str
    sums: UsageSums


class LegendLine(NamedTuple):
    css_class: str
    name: str
    query: str
    value: str
    share: str


class UsageChart(NamedTuple):
    """Cost or tokens by hour or day."""

    plot: TimeBars
    legend: list[LegendLine]


def build_usage_table(
    by: str, period: HomePeriod, owner: int, user: User, *, by_cost: bool
) -> UsageTable:
    """Return what used most, with its change since as much time before."""
    breakdown = BREAKDOWNS[by]
    sums = sum_usage(period.slots(owner), breakdown.column)
    before = sum_usage(period.previous_slots(owner), breakdown.column)
    used = {key: one for key, one in sums.items() if any(one)}
    ranked = sorted(
        used, key=lambda key: (-measure_usage(used[key], by_cost), str(key))
    )
    names = name_keys(by, ranked[:MAX_ROWS], user)
    whole = measure_usage(add_usage(used.values()), by_cost)
    most = measure_usage(used[ranked[0]], by_cost) if ranked else 0
    rows = [
        build_usage_row(
            *(key, names[key], used[key], before.get(key, UsageSums())),
            query=period.to_list_query(**{breakdown.filter_name: str(key)}),
            by_cost=by_cost,
            whole=whole,
            most=most,
        )
        for key in ranked[:MAX_ROWS]
    ]
    return UsageTable(by, breakdown.label, rows, len(ranked) - len(rows))


def build_usage_row(
    key: int | str,
    name: str,
    sums: UsageSums,
    before: UsageSums,
    *,
    query: str,
    by_cost: bool,
    whole: float,
    most: float,
) -> UsageRow:
    value, earlier = measure_usage(sums, by_cost), measure_usage(before, by_cost)
    change = round(100 * (value - earlier) / earlier) if earlier else 0
    return UsageRow(
        key,
        name,
        query,
        sums,
        format_share(value, whole),
        f"{100 * value / most:.1f}" if most else "0",
        f"{'+' if change > 0 else '−'}{number(abs(change))}%" if change else "",
        change > 0,
    )


def build_usage_chart(
    table: UsageTable, period: HomePeriod, owner: int, *, by_cost: bool
) -> UsageChart:
    """Return the bars of all hours or days, stacked by the rows of the table."""
    column = BREAKDOWNS[table.by].column
    by_mark: dict[datetime, dict[int | str, UsageSums]] = defaultdict(dict)
    by_time = sum_usage_by_time(period.slots(owner), column, period.unit)
    for (at, key), sums in by_time.items():
        by_mark[at][key] = sums
    shown = [row.key for row in table.rows[:STACKED]]
    stacks = [stack_usage(by_mark[at.astimezone(UTC)], shown) for at in period.marks]
    heights = [[measure_usage(sums, by_cost) for sums in stack] for stack in stacks]
    unit = SMALLEST_UNIT if by_cost else 1
    top = round_up_axis(max(sum(stack) for stack in heights), unit=unit)
    contents = [
        BarContent(
            period.to_bar_query(place),
            when := period.describe_mark(place),
            describe_usage(when, add_usage(stacks[place])),
            stack_parts(compute_share_heights(stack, top)),
        )
        for place, stack in enumerate(heights)
    ]
    ticks = [format_measure(top * part, by_cost) for part in (1, 0.5, 0)]
    return UsageChart(
        lay_out_time_bars(contents, ticks),
        build_legend(table, stacks, by_cost=by_cost),
    )


def stack_usage(
    here: Mapping[int | str, UsageSums], shown: Sequence[int | str]
) -> list[UsageSums]:
    """Return the sums of the shown keys, and those of all others together."""
    parts = [here.get(key, UsageSums()) for key in shown]
    others = (sums for key, sums in here.items() if key not in shown)
    return [*parts, add_usage(others)]


def compute_share_heights(
    values: Sequence[float], top: float
) -> Iterator[tuple[str, float]]:
    """Yield class and height of the pieces of a bar, the largest at the bottom."""
    for place, value in enumerate(values):
        if value > 0:
            css_class = OTHERS if place == len(values) - 1 else f"u{place + 1}"
            yield css_class, 100 * value / top


def build_legend(
    table: UsageTable, stacks: list[list[UsageSums]], *, by_cost: bool
) -> list[LegendLine]:
    """Return a line for each color."""
    lines = [
        LegendLine(
            f"u{place + 1}",
            row.name,
            row.query,
            format_measure(measure_usage(row.sums, by_cost), by_cost),
            row.share,
        )
        for place, row in enumerate(table.rows[:STACKED])
    ]
    others = measure_usage(add_usage(stack[-1] for stack in stacks), by_cost)
    if others:
        whole = measure_usage(
            add_usage(sums for stack in stacks for sums in stack), by_cost
        )
        share = format_share(others, whole)
        value = format_measure(others, by_cost)
        lines.append(LegendLine(OTHERS, _("Others"), "", value, share))
    return lines


def name_keys(by: str, keys: Iterable[int | str], user: User) -> dict[int | str, str]:
    """Return the names; an agent that is deleted or not visible has no name."""
    keys = list(keys)
    found: dict[int | str, str] = {}
    if by == "model":
        return {key: str(key) or _("Unknown model") for key in keys}
    if by == "agent":
        agents = Agent.objects.visible_to(user).filter(pk__in=keys)
        found = dict(agents.values_list("pk", "name"))
        return {key: found.get(key) or _("Unavailable agent") for key in keys}
    for person in User.objects.filter(pk__in=keys):
        found[person.pk] = get_person_name(person)
    return {key: found.get(key, "") for key in keys}


def add_usage(many: Iterable[UsageSums]) -> UsageSums:
    return reduce(add, many, UsageSums())


def measure_usage(sums: UsageSums, by_cost: bool) -> float:
    """Return what bars and ranks show: dollars, or tokens if nothing has a price."""
    return float(sums.cost) if by_cost else sums.tokens


def format_measure(value: float, by_cost: bool) -> str:
    return money(value) if by_cost else number(int(value), "short")


def format_share(value: float, whole: float) -> str:
    return f"{format_number(round(100 * value / whole))}%" if whole else ""


def describe_usage(when: str, sums: UsageSums) -> str:
    return _("%(when)s: %(cost)s, %(tokens)s tokens") % {
        "when": when,
        "cost": money(float(sums.cost)),
        "tokens": number(sums.tokens),
    }


def list_usage(by: str, period: HomePeriod, owner: int) -> list[UsageLine]:
    """Return each hour or day by agent, person or model, in this order."""
    column = BREAKDOWNS[by].column
    sums = sum_usage_by_time(period.slots(owner), column, period.unit)
    zone = period.begin.tzinfo
    found = [
        UsageLine(at.astimezone(zone), key, one)
        for (at, key), one in sums.items()
        if any(one)
    ]
    return sorted(found, key=lambda line: (line.begin, -line.sums.cost, str(line.key)))
