"""The home page: what needs attention, key figures, charts and recent runs."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest, render_page_or_part, wants_part
from runs.models import Run, ScoredRun, ScoringRule
from runs.services.health.workers import get_worker_health, has_live_worker
from runs.services.rules.figures import load_scores_by_day, load_scores_by_rule
from runs.services.search.slot_figures import (
    PendingRun,
    RunSums,
    add_run_sums,
    get_slots_owner,
    list_pending_runs,
    sum_agents_and_models,
    sum_by_agent,
    sum_runs,
    sum_runs_by_time,
)
from runs.time_zone import is_viewer_zone_known
from runs.ui.evaluation.day_bars import build_day_chart
from runs.ui.list_of_run import build_list_query
from runs.ui.list_state import get_list_state, knows_list_state
from runs.views.home.activity import list_recent_runs
from runs.views.home.attention import Attention, list_attention
from runs.views.home.charts import (
    build_run_chart,
    find_worst_failure,
    rank_agents,
    rank_failing_tools,
    rank_models,
)
from runs.views.home.first_steps import (
    build_welcome_context,
    has_hidden_first_steps,
    list_first_steps,
)
from runs.views.home.key_figures import PeriodFigures, build_key_figures
from runs.views.home.period import RANGE_LABELS, HomePeriod, read_period

MAX_SCORED_RULES = 6
MIN_RUNS = 10
"""Runs from which on figures and charts say something."""


@require_GET
def home(request: HtmxRequest) -> HttpResponse:
    """Show the home page, or how to start a first run; its figures as a part."""
    runs, mine = _select_runs(request)
    counts_tests = is_counting_tests(request)
    period = read_period(request.GET)
    period = replace(period, counts_tests=counts_tests, mine=mine)
    figures = (
        build_figures_context(runs, request.user, period, mine=mine)
        if has_enough_runs(runs, counts_tests=counts_tests)
        else {}
    )
    page, part = "home/home.html", "home/_period.html"
    if wants_part(request):
        context = {"mine": mine, "counts_tests": counts_tests, "period": period}
        context |= {"is_zone_known": is_viewer_zone_known(request), "is_update": True}
        return render_page_or_part(request, page, part, context | figures)
    context = _build_runs_context(
        runs, request.user, mine=mine, counts_tests=counts_tests
    )
    context["attention"] = load_attention(request.user, mine=mine)
    if not mine and not runs.exists():
        welcome = build_welcome_context(request.user, request.GET.get("try", ""))
        return render(request, "home/start.html", context | welcome)
    steps = list_first_steps(request.user)
    done = sum(step.is_done for step in steps)
    context |= {
        "sees_all": request.user.is_superuser,
        "period": period,
        "ranges": RANGE_LABELS,
        "period_kept": {
            **({"mine": "1"} if mine else {}),
            **({"tests": "1"} if counts_tests else {}),
        },
        "today": timezone.localdate(),
        "is_zone_known": is_viewer_zone_known(request),
        "steps": steps,
        "steps_done": done,
        "steps_open": done < len(steps) and not has_hidden_first_steps(request.user),
    }
    context["is_wide"] = not figures.get("agents")
    return render_page_or_part(request, page, part, context | figures)


@require_GET
def home_attention(request: HtmxRequest) -> HttpResponse:
    """Show what needs attention and whether workers are missing, after a change."""
    _runs, mine = _select_runs(request)
    attention = load_attention(request.user, mine=mine)
    if knows_list_state(request, attention.state):
        return HttpResponse(status=204)
    context = {"attention": attention, "mine": mine}
    return render(request, "home/_attention.html", context)


def load_attention(user: User, *, mine: bool) -> Attention:
    """Return the card; its state also changes with the note on missing workers."""
    attention = list_attention(user, mine=mine)
    if has_live_worker():
        return attention
    queued = get_worker_health().queued
    return attention._replace(state=f"{attention.state}-no-worker-{queued}")


@require_GET
def home_runs(request: HtmxRequest) -> HttpResponse:
    """Show the recent runs; an idle card only after a change."""
    runs, mine = _select_runs(request)
    if knows_list_state(request, get_list_state(runs, request.user)):
        return HttpResponse(status=204)
    counts_tests = is_counting_tests(request)
    context = _build_runs_context(
        runs, request.user, mine=mine, counts_tests=counts_tests
    )
    context["is_wide"] = request.GET.get("wide") == "1"
    return render(request, "home/_runs.html", context)


def _select_runs(request: HtmxRequest) -> tuple[QuerySet[Run], bool]:
    """Return the runs of the page, and whether an administrator sees only their own."""
    mine = request.GET.get("mine") == "1" and request.user.is_superuser
    runs = Run.objects.visible_to(request.user)
    return (runs.filter(owner=request.user) if mine else runs), mine


def is_counting_tests(request: HtmxRequest) -> bool:
    """Whether test runs and runs of experiments count; by default they do not."""
    return request.GET.get("tests") == "1"


def select_counted_runs(runs: QuerySet[Run], *, counts_tests: bool) -> QuerySet[Run]:
    return runs if counts_tests else runs.filter(is_test=False)


def has_enough_runs(runs: QuerySet[Run], *, counts_tests: bool) -> bool:
    """Whether figures of the counted runs would say something."""
    counted = select_counted_runs(runs, counts_tests=counts_tests)
    return counted.filter(parent_step=None)[:MIN_RUNS].count() == MIN_RUNS


def _build_runs_context(
    runs: QuerySet[Run], user: User, *, mine: bool, counts_tests: bool
) -> dict[str, Any]:
    counted = select_counted_runs(runs, counts_tests=counts_tests)
    query = build_all_runs_query(mine=mine, counts_tests=counts_tests)
    # before the rows: later changes are for the next poll
    state = get_list_state(runs, user)
    return {
        "recent": list_recent_runs(counted),
        "all_runs_query": query,
        "listed": build_list_query(query),
        "state": state,
        "mine": mine,
        "counts_tests": counts_tests,
    }


def build_all_runs_query(*, mine: bool, counts_tests: bool) -> str:
    """Return the query of the list that has the same runs."""
    chosen = {"mine": "1"} if mine else {}
    chosen |= {"tests": "with"} if counts_tests else {}
    return f"?{urlencode(chosen)}" if chosen else ""


def build_figures_context(
    runs: QuerySet[Run], user: User, period: HomePeriod, *, mine: bool
) -> dict[str, Any]:
    """Return figures and charts; only that there are no runs, if there are none."""
    owner = get_slots_owner(user, mine=mine)
    runs = select_counted_runs(runs, counts_tests=period.counts_tests)
    pending = list_pending_runs(runs, period.begin, period.end)
    figures = add_pending_runs(load_ended_figures(period, owner), period, pending)
    if not figures.sums.total and not figures.sums.tests:
        return {"has_figures": True, "is_empty": True}
    sums = sum_agents_and_models(period.slots(owner))
    by_cost = bool(figures.sums.cost)
    rules = ScoringRule.objects.visible_to(user)
    rules = rules.filter(owner=user) if mine else rules
    by_agent = sum_by_agent(sums, pending)
    agents = rank_agents(period, by_agent, user=user, rules=rules)
    return {
        "has_figures": True,
        "sums": figures.sums,
        "figures": build_key_figures(period, figures, owner),
        "chart": build_run_chart(period, figures.by_mark),
        "worst": find_worst_failure(period, figures.by_mark, runs),
        "models": rank_models(period, sums, by_cost=by_cost),
        "by_cost": by_cost,
        "tools": [] if mine else rank_failing_tools(period, user),
        "agents": agents,
        "has_agent_scores": any(one.scores for one in agents),
        **build_scores_context(rules),
    }


def build_scores_context(rules: QuerySet[ScoringRule]) -> dict[str, Any]:
    """Return the scores of rules by day, and by version of their agents."""
    by_day = load_scores_by_day(ScoredRun.objects.filter(rule__in=rules))
    chart = build_day_chart(by_day)
    return {
        "scores": chart,
        "rule_scores": load_scores_by_rule(rules, most=MAX_SCORED_RULES)
        if chart.most
        else [],
    }


def load_ended_figures(period: HomePeriod, owner: int) -> PeriodFigures:
    counted = sum_runs_by_time(period.slots(owner), period.unit)
    by_mark = [counted.get(mark, RunSums()) for mark in period.marks]
    before = sum_runs(period.previous_slots(owner))
    return PeriodFigures(add_run_sums(by_mark), before, by_mark)


def add_pending_runs(
    figures: PeriodFigures, period: HomePeriod, pending: Iterable[PendingRun]
) -> PeriodFigures:
    """Return the figures with those runs that no other run started."""
    by_mark = list(figures.by_mark)
    for run in pending:
        place = None if run.is_child else period.place_of(run.started_at)
        if place is not None:
            sums = by_mark[place]
            by_mark[place] = sums._replace(pending=sums.pending + 1)
    return figures._replace(sums=add_run_sums(by_mark), by_mark=by_mark)
