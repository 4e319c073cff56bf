"""The runs that match the filters of the list."""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Exists, Func, OuterRef, Q, QuerySet, TextField
from django.db.models.lookups import IContains
from django.db.models.sql.compiler import SQLCompiler
from django.utils import timezone

from runs.models import Agent, AgentStep, Run, RunTag, RunTool, Spec
from runs.views.run_list.filters import (
    ANY_SCHEDULE,
    SINCE_PERIODS,
    RunFilters,
    parse_amount,
    parse_end,
    parse_time,
)
from runs.whole_number import parse_whole_number

INDEXED_WORD_LENGTH = 3
MAX_COMPARED_RUNS = 100_000
"""Runs whose text is compared with a word that is too short for the index."""


class InputsText(Func):
    """The values of the inputs, one per line, without the names of the variables."""

    output_field = TextField()
    template = "(SELECT group_concat(value, char(10)) FROM json_each(%(expressions)s))"

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper
    ) -> tuple[str, Sequence[object]]:
        template = (
            "(SELECT string_agg(value, chr(10)) FROM jsonb_each_text(%(expressions)s))"
        )
        return self.as_sql(compiler, connection, template=template)


def apply_run_filters(
    runs: QuerySet[Run], filters: RunFilters, *, user: User
) -> QuerySet[Run]:
    """Return the runs that match all filters except the search."""
    if filters.status:
        runs = runs.filter(status__in=filters.statuses)
    if filters.agent:
        runs = runs.filter(agent__in=filters.agent)
        if filters.version is not None:
            is_draft = filters.version == 0
            number = Q(version=None) if is_draft else Q(version__number=filters.version)
            runs = runs.filter(number)
    if filters.mine:
        runs = runs.filter(owner=user)
    if filters.user:
        runs = runs.filter(owner__in=filters.user)
    if filters.source:
        runs = runs.filter(source__in=filters.source)
    if filters.error:  # the status has an index
        runs = runs.filter(status="failed", error_code__in=filters.error)
    if filters.tests and filters.test_choice != "with":
        runs = runs.filter(is_test=filters.test_choice == "only")
    return _filter_by_search_row(
        _filter_by_time(
            _filter_by_related(_filter_by_schedule(runs, filters), filters),
            filters,
        ),
        filters,
    )


def _filter_by_related(runs: QuerySet[Run], filters: RunFilters) -> QuerySet[Run]:
    if filters.rating in ("any", "none"):
        runs = runs.filter(rating__isnull=filters.rating == "none")
    elif filters.rating:
        runs = runs.filter(rating=Run.RATINGS[filters.rating])
    if filters.model:
        specs = Spec.objects.filter(body__model__model__in=filters.model)
        runs = runs.filter(spec__in=list(specs.values_list("pk", flat=True)))
    if len(filters.tag) == 1:
        runs = runs.filter(tags__name=filters.tag[0])
    elif filters.tag:
        tagged = RunTag.objects.filter(run=OuterRef("pk"), name__in=filters.tag)
        runs = runs.filter(Exists(tagged))
    return _filter_by_tools(runs, filters)


def _filter_by_tools(runs: QuerySet[Run], filters: RunFilters) -> QuerySet[Run]:
    if len(filters.tool) == 1:
        runs = runs.filter(called_tools__tool=filters.tool[0])
    elif filters.tool:
        called = RunTool.objects.filter(run=OuterRef("pk"), tool__in=filters.tool)
        runs = runs.filter(Exists(called))
    if len(filters.failed_tool) == 1:
        runs = runs.filter(
            called_tools__tool=filters.failed_tool[0], called_tools__has_failed=True
        )
    elif filters.failed_tool:
        failed = RunTool.objects.filter(
            run=OuterRef("pk"), tool__in=filters.failed_tool, has_failed=True
        )
        runs = runs.filter(Exists(failed))
    return runs


def _filter_by_schedule(runs: QuerySet[Run], filters: RunFilters) -> QuerySet[Run]:
    if filters.schedule == ANY_SCHEDULE:
        return runs.filter(schedule__isnull=False)
    number = parse_whole_number(filters.schedule)
    return runs if number is None else runs.filter(schedule=number)


def _filter_by_time(runs: QuerySet[Run], filters: RunFilters) -> QuerySet[Run]:
    if filters.since:
        runs = runs.filter(
            created_at__gte=timezone.now() - SINCE_PERIODS[filters.since]
        )
    if filters.begin and (first := parse_time(filters.begin)) is not None:
        runs = runs.filter(created_at__gte=first)
    if filters.end and (last := parse_end(filters.end)) is not None:
        runs = runs.filter(created_at__lt=last)
    return runs


def _filter_by_search_row(runs: QuerySet[Run], filters: RunFilters) -> QuerySet[Run]:
    if filters.cost:
        runs = runs.filter(search_row__cost__gte=parse_amount(filters.cost))
    if filters.seconds:
        runs = runs.filter(search_row__seconds__gte=float(filters.seconds))
    return runs


def build_search_conditions(filters: RunFilters) -> list[Q]:
    """Return the conditions of the search, each for a query of its own.

    Ended runs are found by their search row, the few others by title, inputs or tool.
    A number finds runs that other runs started, and test runs, too.
    """
    shown = Q() if filters.includes_children else Q(parent_step=None)
    if not filters.tests and filters.test_choice == "without":
        shown &= Q(is_test=False)
    if not filters.q:
        return [shown]
    by_search_row = shown & Q(
        indexed=True, search_row__text__contains=filters.q.lower()
    )
    if (first := get_first_searched_run(filters)) is not None:
        by_search_row &= Q(pk__gte=first)
    if filters.needs_search_row:
        return [by_search_row]
    called = AgentStep.objects.filter(run=OuterRef("pk"), tool__icontains=filters.q)
    asked = IContains(InputsText("inputs"), filters.q)
    others = Q(title__icontains=filters.q) | Q(asked) | Q(Exists(called))
    found = [by_search_row, shown & Q(indexed=False) & others]
    number = parse_whole_number(filters.q)
    return found if number is None else [*found, Q(pk=number)]


def get_first_searched_run(filters: RunFilters) -> int | None:
    """Return the number of the first run that a search looks at; None for all.

    The index finds words of three characters. Shorter ones are compared with each text,
    so only the latest runs are searched for them.
    """
    if not 0 < len(filters.q) < INDEXED_WORD_LENGTH:
        return None
    newest = Run.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    return newest - MAX_COMPARED_RUNS + 1 if newest > MAX_COMPARED_RUNS else None


def query_visible_agents(user: User) -> QuerySet[Agent]:
    return Agent.objects.visible_to(user).order_by("name")
