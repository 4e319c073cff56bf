"""How the figures of a list changed since the period before the filtered one."""

from dataclasses import replace
from typing import NamedTuple

from django.contrib.auth.models import User
from django.utils import timezone

from runs.models import Run
from runs.services.search.run_sample import (
    RunFigures,
    group_sample,
    sample_runs,
    summarize_sample,
)
from runs.ui.format import duration, format_points, number
from runs.views.run_list.filter_queries import get_first_searched_run
from runs.views.run_list.filters import (
    SINCE_PERIODS,
    RunFilters,
    parse_end,
    parse_time,
)
from runs.views.run_list.pagination import build_run_queries


class FigureChange(NamedTuple):
    """The amount as text, and whether it is a rise, and for the worse."""

    words: str
    is_rise: bool
    is_worse: bool = False


class FigureChanges(NamedTuple):
    """None for what did not change, or cannot be compared."""

    total: FigureChange | None = None
    error_rate: FigureChange | None = None
    median: FigureChange | None = None
    p95: FigureChange | None = None
    cost: FigureChange | None = None


def compare_with_period_before(
    figures: RunFigures, filters: RunFilters, user: User
) -> FigureChanges:
    """Compare with the period of the same length before.

    Without a period, or if only some of the runs are counted or searched, nothing is
    compared.
    """
    earlier = get_filters_of_period_before(filters)
    is_part = not figures.is_whole or get_first_searched_run(filters) is not None
    if earlier is None or is_part:
        return FigureChanges()
    queries = build_run_queries(Run.objects.visible_to(user), earlier, user=user)
    sample = sample_runs(queries, gather=earlier.is_far_back)
    if sample is None or not sample.is_whole or not sample.ids:
        return FigureChanges()
    before = summarize_sample(sample, group_sample(sample))
    return FigureChanges(
        total=compare_amounts(figures.total, before.total),
        error_rate=compare_error_rates(figures, before),
        median=compare_durations(figures.median, before.median),
        p95=compare_durations(figures.p95, before.p95),
        cost=compare_amounts(float(figures.cost), float(before.cost)),
    )


def get_filters_of_period_before(filters: RunFilters) -> RunFilters | None:
    """Return the filters for the same part of the period before, if there is one."""
    now = timezone.now()
    begin, end = parse_time(filters.begin), parse_end(filters.end)
    if filters.since:
        if begin is not None or end is not None:
            return None
        begin, end = now - SINCE_PERIODS[filters.since], now
    if begin is None or end is None:
        return None
    until = min(end, now)
    if begin >= until:
        return None
    try:
        start = begin - (end - begin)
    except OverflowError:
        return None
    latest = start + (until - begin)
    return replace(filters, since="", begin=start.isoformat(), end=latest.isoformat())


def compare_amounts(now: float, before: float) -> FigureChange | None:
    change = round(100 * (now - before) / before) if before else 0
    return FigureChange(f"{number(abs(change))}%", change > 0) if change else None


def compare_error_rates(now: RunFigures, before: RunFigures) -> FigureChange | None:
    if not now.ended or not before.ended:
        return None
    rates = [round(100 * one.failed / one.ended, 1) for one in (now, before)]
    change = round(rates[0] - rates[1], 1)
    if not change:
        return None
    return FigureChange(format_points(change), change > 0, change > 0)


def compare_durations(now: float | None, before: float | None) -> FigureChange | None:
    if now is None or before is None or duration(now) == duration(before):
        return None
    return FigureChange(duration(abs(now - before)), now > before, now > before)
