"""The filters beside the list of runs, and how many runs each choice would show."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_lazy

from runs.models import Agent, Run, RunTag, RunTool, Spec
from runs.services.search.run_sample import (
    MAX_SAMPLED_RUNS,
    RunSample,
    SampledGroup,
    count_sample,
    sample_runs,
)
from runs.ui.error_labels import ERROR_LABELS
from runs.ui.format import format_short_number, number
from runs.ui.status_badge import get_status_label
from runs.views.run_list.filter_queries import query_visible_agents
from runs.views.run_list.filters import RATING_LABELS, TEST_LABELS, RunFilters
from runs.views.run_list.pagination import build_run_queries
from tools.accounts.person_name import get_person_name

MAX_OPTIONS = 100
"""Choices of a facet; others can be given in the URL."""
SOURCE_LABELS = {
    "page": gettext_lazy("Dashboard"),
    "api": gettext_lazy("API"),
    "schedule": gettext_lazy("Schedule"),
    "parent": gettext_lazy("Another run"),
    "hook": gettext_lazy("Incoming webhook"),
    "import": gettext_lazy("Imported trace"),
}
FACET_LABELS = {
    "status": gettext_lazy("Status"),
    "tests": gettext_lazy("Test runs"),
    "agent": gettext_lazy("Agent"),
    "rating": gettext_lazy("Rating"),
    "error": gettext_lazy("Error"),
    "model": gettext_lazy("Model"),
    "tool": gettext_lazy("Tool called"),
    "failed_tool": gettext_lazy("Tool failed"),
    "tag": gettext_lazy("Tag"),
    "source": gettext_lazy("Source"),
    "user": gettext_lazy("Started by"),
}
SINGLE_FACETS = ("tests", "rating")
"""Those of which one choice is always selected."""
OPEN_FACETS = ("status", "tests", "agent")
GROUP_FIELDS = {
    "status": "status",
    "agent": "agent",
    "error": "error",
    "model": "spec",
    "source": "source",
    "user": "owner",
}
"""The field of a `SampledGroup` that a facet counts; tools and tags have tables."""
GROUP_COLUMN_OF = {"error": "error_code", "model": "spec", "user": "owner"}
"""The column of a run that a facet counts, if it has another name."""


class FacetOption(NamedTuple):
    value: str
    label: str
    is_on: bool
    runs: str = ""
    """How many it would show; empty if nothing was counted."""


class Facet(NamedTuple):
    name: str
    label: str
    options: list[FacetOption]
    is_open: bool
    is_counted: bool = False

    @property
    def is_single(self) -> bool:
        return self.name in SINGLE_FACETS


class FacetCounts(NamedTuple):
    """Runs by value; if they are not all, there may be more of each."""

    by_value: Mapping[Any, int]
    is_whole: bool
    whole: frozenset[str] = frozenset()
    """Values of which all runs were counted, if that is not true of each."""


def build_facets(
    filters: RunFilters,
    user: User,
    counts: Mapping[str, FacetCounts] | None = None,
) -> list[Facet]:
    """Return the facets; without counts those choices that need none."""
    return [
        build_facet(name, filters, user, (counts or {}).get(name))
        for name in FACET_LABELS
        if name != "user" or user.is_superuser
    ]


def build_facet(
    name: str, filters: RunFilters, user: User, counts: FacetCounts | None
) -> Facet:
    """Return one facet: its choices, the most frequent first, and those selected."""
    chosen = {str(value) for value in get_chosen_values(name, filters)}
    found = {str(key): n for key, n in counts.by_value.items()} if counts else {}
    labels = list_known_options(name, user)
    missing = {*chosen, *found} - labels.keys()
    labels |= label_options(name, missing, user)
    if name != "status" and name not in SINGLE_FACETS:
        ordered = sorted(labels, key=lambda one: (-found.get(one, 0), labels[one]))
        kept = ordered[:MAX_OPTIONS]
        labels = {one: labels[one] for one in [*kept, *chosen] if one in labels}
    options = [
        FacetOption(
            value, label, value in chosen, format_facet_count(value, found, counts)
        )
        for value, label in labels.items()
    ]
    is_open = name in OPEN_FACETS or any(chosen)
    label = str(FACET_LABELS[name])
    return Facet(name, label, options, is_open, is_counted=counts is not None)


def get_chosen_values(name: str, filters: RunFilters) -> Iterable[object]:
    if name == "status":
        return filters.statuses
    if name == "tests":
        return [filters.test_choice]
    if name == "rating":
        return [filters.rating]
    values: Iterable[object] = getattr(filters, name)
    return values


def format_facet_count(
    value: str, found: Mapping[str, int], counts: FacetCounts | None
) -> str:
    """Write how many runs there are: 1,195, at least 200+, or 10 k+."""
    if counts is None:
        return ""
    count = found.get(value, 0)
    if counts.is_whole or value in counts.whole:
        return number(count)
    if count >= MAX_SAMPLED_RUNS:
        return f"{format_short_number(count)}+"
    return f"{number(count)}+" if count else ""


def list_known_options(name: str, user: User) -> dict[str, str]:
    """Return value and label of the choices that are offered without counting."""
    match name:
        case "status":
            return {one: get_status_label(one) for one in Run.Status.values}
        case "tests":
            return {one: str(label) for one, label in TEST_LABELS.items()}
        case "rating":
            return {one: str(label) for one, label in RATING_LABELS.items()}
        case "agent":
            agents = query_visible_agents(user).values_list("pk", "name")
            return {str(pk): label for pk, label in agents[:MAX_OPTIONS]}
        case "source":
            return {one: str(label) for one, label in SOURCE_LABELS.items()}
    return {}


def label_options(name: str, values: Iterable[str], user: User) -> dict[str, str]:
    """Return the labels of values that were found or selected.

    The name of an agent or a person whom the user cannot see stays a number.
    """
    values = list(values)
    labels = {one: one for one in values}
    match name:
        case "agent" if values:
            runs = Run.objects.visible_to(user).filter(agent=OuterRef("pk"))
            rows = Agent.objects.filter(pk__in=values).filter(
                Q(pk__in=query_visible_agents(user).values("pk")) | Q(Exists(runs))
            )
            labels |= {str(pk): label for pk, label in rows.values_list("pk", "name")}
        case "user" if values and user.is_superuser:
            for one in User.objects.filter(pk__in=values):
                labels[str(one.pk)] = get_person_name(one)
        case "error":
            labels = {one: str(ERROR_LABELS.get(one, one)) for one in values}
    return labels


def count_facets(
    sample: RunSample, groups: list[SampledGroup], filters: RunFilters, user: User
) -> dict[str, FacetCounts]:
    """Count each facet among the runs that match all other filters."""
    visible = Run.objects.visible_to(user)
    found: dict[str, FacetCounts] = {}
    for name in FACET_LABELS:
        if name == "user" and not user.is_superuser:
            continue
        if name == "tests":
            if (tests := count_tests(sample, filters, user)) is not None:
                found[name] = tests
            continue
        others = get_other_filters(name, filters)
        if others is None and name in GROUP_FIELDS:
            counts = count_in_groups(groups, GROUP_FIELDS[name])
            found[name] = FacetCounts(clean_counts(name, counts), sample.is_whole)
            continue
        wider: RunSample | None = sample
        if others is not None:
            queries = build_run_queries(visible, others, user=user)
            wider = sample_runs(queries, gather=others.is_far_back)
        if wider is not None:
            found[name] = count_in_table(name, wider)
    return found


def count_tests(
    sample: RunSample, filters: RunFilters, user: User
) -> FacetCounts | None:
    """Count real runs, test runs and both; None if that takes too long."""
    visible, samples = Run.objects.visible_to(user), []
    for choice in ("without", "only"):
        asked = replace(filters, tests=choice)
        queries = build_run_queries(visible, asked, user=user)
        one = (
            sample
            if choice == filters.test_choice
            else sample_runs(queries, gather=asked.is_far_back)
        )
        if one is None:
            return None
        samples.append(one)
    real, tests = samples
    counts = {"without": len(real.ids), "only": len(tests.ids)}
    counts["with"] = sum(counts.values())
    known = {"without": real.is_whole, "only": tests.is_whole}
    whole = frozenset(choice for choice, is_whole in known.items() if is_whole)
    return FacetCounts(counts, all(known.values()), whole)


def get_other_filters(name: str, filters: RunFilters) -> RunFilters | None:
    """Return the filters without one facet; None if it changes nothing."""
    if name == "agent":  # a list of one agent has its sub-agent runs
        others = replace(filters, agent=(), version=None, children=True)
        return others if filters.agent or not filters.includes_children else None
    return filters.without(name) if getattr(filters, name) else None


def count_in_groups(groups: Iterable[SampledGroup], field: str) -> Counter[Any]:
    found = Counter[Any]()
    for one in groups:
        found[getattr(one, field)] += one.runs
    return found


def count_in_table(name: str, sample: RunSample) -> FacetCounts:
    """Count sampled runs, their tags, or the tools that they called."""
    match name:
        case "tag":
            tags = RunTag.objects.all()
            counts = count_sample(sample, tags, key="run_id", column="name")
        case "tool":
            called = RunTool.objects.all()
            counts = count_sample(sample, called, key="run_id", column="tool")
        case "failed_tool":
            failed = RunTool.objects.filter(has_failed=True)
            counts = count_sample(sample, failed, key="run_id", column="tool")
        case "rating":
            rated = count_sample(sample, Run.objects.all(), key="id", column="rating")
            counts = {word: rated.get(n, 0) for word, n in Run.RATINGS.items()}
            rated_runs, all_runs = sum(counts.values()), len(sample.ids)
            counts |= {"any": rated_runs, "none": all_runs - rated_runs, "": all_runs}
            return FacetCounts(counts, sample.is_whole)
        case _:
            column = GROUP_COLUMN_OF.get(name, name)
            counts = count_sample(sample, Run.objects.all(), key="id", column=column)
    return FacetCounts(clean_counts(name, counts), sample.is_whole)


def clean_counts(name: str, counts: Mapping[Any, int]) -> dict[Any, int]:
    """Return counts by the values of the URL: no empty ones, models for specs."""
    if name != "model":
        return {value: count for value, count in counts.items() if value != ""}
    specs = Spec.objects.filter(pk__in=list(counts))
    found = Counter[str]()
    for pk, model in specs.values_list("pk", "body__model__model"):
        if model:
            found[model] += counts[pk]
    return found
