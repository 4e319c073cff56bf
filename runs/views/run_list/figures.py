"""The figures above the list of runs, and the counts beside its filters."""

from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.models import Run
from runs.services.search.run_sample import (
    MAX_SAMPLED_RUNS,
    RunFigures,
    group_sample,
    sample_runs,
    summarize_sample,
)
from runs.ui.format import dollars, duration, format_short_number, number, percent_of
from runs.views.run_list.bulk_actions import MAX_SELECTED_RUNS
from runs.views.run_list.facets import (
    FacetCounts,
    build_facets,
    count_facets,
    format_facet_count,
)
from runs.views.run_list.figure_changes import (
    FigureChange,
    FigureChanges,
    compare_with_period_before,
)
from runs.views.run_list.filters import RunFilters
from runs.views.run_list.histogram import build_run_histogram
from runs.views.run_list.pagination import build_run_queries

UNKNOWN = "–"


class Tile(NamedTuple):
    label: str
    value: str
    note: str = ""
    is_bad: bool = False
    change: FigureChange | None = None
    """Shown instead of the note."""


class MatchingRuns(NamedTuple):
    """How many runs the box selects that stands for all of them."""

    total: int
    text: str
    limit: int
    """How many can be selected at once."""

    @property
    def is_too_many(self) -> bool:
        return self.total > self.limit


def build_figures(filters: RunFilters, user: User) -> dict[str, Any]:
    """Return the figures of the matching runs; none if counting takes too long."""
    visible = Run.objects.visible_to(user)
    queries = build_run_queries(visible, filters, user=user)
    sample = sample_runs(queries, gather=filters.is_far_back)
    if sample is None:
        note = _("Too many runs to count with these filters")
        return {
            "tiles": build_empty_tiles(note),
            "facets": build_facets(filters, user),
            "is_uncounted": True,
        }
    groups = group_sample(sample)
    figures = summarize_sample(sample, groups)
    counts = (
        count_facets_without_sort(filters, user)
        if filters.sort
        else count_facets(sample, groups, filters, user)
    )
    tests = counts.get("tests")
    changes = compare_with_period_before(figures, filters, user)
    return {
        "test_count": format_facet_count("only", tests.by_value, tests)
        if tests
        else "",
        "tiles": build_tiles(figures, changes),
        "matching": MatchingRuns(
            figures.total, format_total(figures), MAX_SELECTED_RUNS
        ),
        "histogram": build_run_histogram(sample, filters),
        "facets": build_facets(filters, user, counts),
        "is_uncounted": not counts,
    }


def count_facets_without_sort(
    filters: RunFilters, user: User
) -> dict[str, FacetCounts]:
    """Count the choices of a sorted list with the unfinished runs, which it leaves out.

    Otherwise *Running* and *Queued* would always have none.
    """
    filters = filters.without("sort")
    queries = build_run_queries(Run.objects.visible_to(user), filters, user=user)
    sample = sample_runs(queries, gather=filters.is_far_back)
    if sample is None:
        return {}
    return count_facets(sample, group_sample(sample), filters, user)


def build_empty_tiles(note: str = "") -> list[Tile]:
    """Return the figures before they are known."""
    labels = [_("Runs"), _("Error rate"), _("Median time"), _("p95 time"), _("Cost")]
    return [
        Tile(label, UNKNOWN, note if place == 0 else "")
        for place, label in enumerate(labels)
    ]


def build_tiles(figures: RunFigures, changes: FigureChanges) -> list[Tile]:
    failed = ngettext("%(count)s failed", "%(count)s failed", figures.failed)
    ended = ngettext("%(count)s ended", "%(count)s ended", figures.ended)
    per_run = figures.cost / figures.total if figures.total else None
    return [
        Tile(
            _("Runs"),
            format_total(figures),
            describe_count(figures),
            change=changes.total,
        ),
        Tile(
            _("Error rate"),
            percent_of(figures.failed, figures.ended) or UNKNOWN,
            failed % {"count": number(figures.failed)} if figures.failed else "",
            is_bad=figures.failed > 0,
            change=changes.error_rate,
        ),
        Tile(
            _("Median time"),
            duration(figures.median) or UNKNOWN,
            ended % {"count": number(figures.ended)} if figures.ended else "",
            change=changes.median,
        ),
        Tile(_("p95 time"), duration(figures.p95) or UNKNOWN, change=changes.p95),
        Tile(
            _("Cost"),
            dollars(figures.cost) or "$0",
            _("%(cost)s per run") % {"cost": dollars(per_run)} if figures.cost else "",
            change=changes.cost,
        ),
    ]


def format_total(figures: RunFigures) -> str:
    """Write how many runs match: 1,284, or 10 k+."""
    if figures.is_whole:
        return number(figures.total)
    return f"{format_short_number(MAX_SAMPLED_RUNS)}+"


def describe_count(figures: RunFigures) -> str:
    """Say which runs the figures are of, or how many of them have not ended."""
    if not figures.is_whole:
        latest = number(MAX_SAMPLED_RUNS)
        return _("Figures of the latest %(count)s") % {"count": latest}
    unfinished = ngettext(
        "%(count)s unfinished", "%(count)s unfinished", figures.unfinished
    )
    return (
        unfinished % {"count": number(figures.unfinished)} if figures.unfinished else ""
    )
