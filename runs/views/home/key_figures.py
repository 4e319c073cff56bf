"""The key figures of a period, with their change since the time before."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from django.utils.translation import gettext as _

from runs.services.search.duration_buckets import estimate_percentile
from runs.services.search.slot_figures import (
    RunSums,
    count_durations,
    count_durations_by_time,
)
from runs.ui.format import duration, format_number, format_points, money, number
from runs.views.home.period import HomePeriod

SPARK_TOP, SPARK_HEIGHT = 8.0, 84.0
"""Of 100 units, so that the line keeps away from the edges."""


class KeyFigure(NamedTuple):
    """A figure, how it changed, and its line."""

    label: str
    value: str
    query: str
    """Of the list of runs."""
    before: str = ""
    line: str = ""
    """Points in a square of 100 units; empty if there are too few."""
    arrow: str = ""
    change: str = ""
    change_words: str = ""
    """The direction for screen readers."""
    tone: str = ""

    @property
    def area(self) -> str:
        """The path around what is below the line."""
        return f"M{self.line} V100 H{self.line.split()[0]}Z"


class PeriodFigures(NamedTuple):
    """What the figures and charts of a period are drawn from."""

    sums: RunSums
    before: RunSums
    by_mark: Sequence[RunSums]
    """Of each hour or day."""


def build_key_figures(
    period: HomePeriod, figures: PeriodFigures, owner: int
) -> list[KeyFigure]:
    """Return runs, success rate, p95 time, and cost or tokens."""
    has_cost = figures.sums.cost or figures.before.cost
    return [
        _build_count(period, figures),
        _build_success_rate(period, figures),
        _build_duration(period, owner),
        (_build_cost if has_cost else _build_tokens)(period, figures),
    ]


def build_usage_figures(period: HomePeriod, figures: PeriodFigures) -> list[KeyFigure]:
    """Return cost, tokens, runs, and cost or tokens per run."""
    built = [_build_tokens(period, figures), _build_count(period, figures)]
    if figures.sums.cost or figures.before.cost:
        built.insert(0, _build_cost(period, figures))
        built.append(_build_cost_per_run(period, figures))
    return built


def _build_cost_per_run(period: HomePeriod, figures: PeriodFigures) -> KeyFigure:
    now, before = (
        compute_cost_per_run(figures.sums),
        compute_cost_per_run(figures.before),
    )
    figure = KeyFigure(
        _("Cost per run"),
        "–" if now is None else money(now),
        build_usage_query(period, "cost"),
        "" if before is None else period.describe_before(money(before)),
        draw_line([compute_cost_per_run(sums) for sums in figures.by_mark]),
    )
    return _with_ratio(figure, now or 0, before or 0, tone="need")


def compute_cost_per_run(sums: RunSums) -> float | None:
    """Return the cost of an ended run with those that it started; None without any."""
    ended = sums.ended + sums.canceled
    return float(sums.cost) / ended if ended else None


def _build_count(period: HomePeriod, figures: PeriodFigures) -> KeyFigure:
    total, before = figures.sums.total, figures.before.total
    figure = KeyFigure(
        _("Runs"),
        number(total),
        period.to_list_query(),
        period.describe_before(number(before)) if before else "",
        draw_line([sums.total for sums in figures.by_mark]),
    )
    return _with_ratio(figure, total, before)


def _build_success_rate(period: HomePeriod, figures: PeriodFigures) -> KeyFigure:
    rate, before = figures.sums.success_rate, figures.before.success_rate
    figure = KeyFigure(
        _("Success rate"),
        "–" if rate is None else _format_rate(rate),
        period.to_list_query(status="failed"),
        "" if before is None else period.describe_before(_format_rate(before)),
        draw_line([sums.success_rate for sums in figures.by_mark]),
    )
    if rate is None or before is None:
        return figure
    change = round(round(100 * rate, 1) - round(100 * before, 1), 1)
    tone = "good" if change > 0 else "bad"
    return _with_change(figure, change, format_points(change), tone)


def _build_duration(period: HomePeriod, owner: int) -> KeyFigure:
    by_time = count_durations_by_time(period.slots(owner), period.unit)
    counts = sum(by_time.values(), Counter[int]())
    before = count_durations(period.previous_slots(owner))
    slow, earlier = _estimate_p95(counts), _estimate_p95(before)
    figure = KeyFigure(
        _("p95 time"),
        f"≈ {duration(slow)}" if slow is not None else "–",
        period.to_list_query(sort="seconds"),
        "" if earlier is None else period.describe_before(duration(earlier)),
        draw_line([_estimate_p95(by_time.get(at, {})) for at in period.marks]),
    )
    if slow is None or earlier is None or duration(slow) == duration(earlier):
        return figure
    change = slow - earlier
    tone = "bad" if change > 0 else "good"
    return _with_change(figure, change, duration(abs(change)), tone)


def _build_cost(period: HomePeriod, figures: PeriodFigures) -> KeyFigure:
    cost, before = float(figures.sums.cost), float(figures.before.cost)
    figure = KeyFigure(
        _("Cost of ended runs") if figures.sums.pending else _("Cost"),
        money(cost),
        build_usage_query(period, "cost"),
        period.describe_before(money(before)) if before else "",
        draw_line([float(sums.cost) for sums in figures.by_mark]),
    )
    return _with_ratio(figure, cost, before, tone="need")


def _build_tokens(period: HomePeriod, figures: PeriodFigures) -> KeyFigure:
    tokens, before = figures.sums.tokens, figures.before.tokens
    figure = KeyFigure(
        _("Tokens of ended runs") if figures.sums.pending else _("Tokens"),
        number(tokens, "short"),
        build_usage_query(period, "tokens"),
        period.describe_before(number(before, "short")) if before else "",
        draw_line([sums.tokens for sums in figures.by_mark]),
    )
    return _with_ratio(figure, tokens, before)


def build_usage_query(period: HomePeriod, sort: str, **filters: str) -> str:
    """Return the query of the list of all runs whose cost and tokens are counted.

    Those are ended runs, as in any sorted list, with tests and runs that runs started.
    """
    return period.to_list_query(sort=sort, tests="with", children="1", **filters)


def _with_ratio(
    figure: KeyFigure, value: float, before: float, *, tone: str = ""
) -> KeyFigure:
    """Add the change in percent; `tone` only of a rise."""
    change = round(100 * (value - before) / before) if before else 0
    words = f"{number(abs(change))}%"
    return _with_change(figure, change, words, tone if change > 0 else "")


def _with_change(figure: KeyFigure, change: float, words: str, tone: str) -> KeyFigure:
    if not change:
        return figure
    return figure._replace(
        arrow="▲" if change > 0 else "▼",
        change=words,
        change_words=_("up") if change > 0 else _("down"),
        tone=tone,
    )


def _estimate_p95(counts: "Counter[int] | dict[int, int]") -> float | None:
    return estimate_percentile(counts, 0.95) if counts else None


def _format_rate(rate: float) -> str:
    return f"{format_number(100 * rate, places=1)}%"


def draw_line(values: Sequence[float | None]) -> str:
    """Return the points of a line; hours and days without a value are left out."""
    known = [(n, value) for n, value in enumerate(values) if value is not None]
    if len(known) < 2:
        return ""
    low, high = min(v for _n, v in known), max(v for _n, v in known)
    last = len(values) - 1
    return " ".join(
        f"{100 * n / last:.1f} {_place_of(value, low, high):.1f}" for n, value in known
    )


def _place_of(value: float, low: float, high: float) -> float:
    if high == low:
        return SPARK_TOP + SPARK_HEIGHT / 2
    return SPARK_TOP + SPARK_HEIGHT * (high - value) / (high - low)
