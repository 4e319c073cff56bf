"""The usage page: cost, tokens and runs of a period, by agent, person and model."""

import csv
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest
from runs.services.search.slot_figures import get_slots_owner, sum_usage
from runs.time_zone import is_viewer_zone_known
from runs.views.home.key_figures import build_usage_figures
from runs.views.home.page import load_ended_figures
from runs.views.home.period import RANGE_LABELS, HomePeriod, read_period
from runs.views.usage.breakdown import (
    BREAKDOWNS,
    build_usage_chart,
    build_usage_table,
    list_usage,
    name_keys,
)
from runs.views.usage.unpriced import find_unpriced_models
from tools.text.csv_cell import format_csv_cell

DEFAULT_RANGE = "30d"


@require_GET
def usage(request: HtmxRequest) -> HttpResponse:
    """Show what runs used: everyone's to administrators, else the user's own."""
    sees_all, mine = request.user.is_superuser, is_only_mine(request)
    period = read_period(request.GET, default=DEFAULT_RANGE)
    by = read_breakdown(request)
    kept = {"mine": "1"} if mine and sees_all else {}
    context = {
        "sees_all": sees_all,
        "mine": mine,
        "by": by,
        "breakdowns": list_breakdowns(request),
        "period": period,
        "period_kept": {**kept, "by": by},
        "ranges": RANGE_LABELS,
        "today": timezone.localdate(),
        "is_zone_known": is_viewer_zone_known(request),
    }
    context |= build_usage_context(request, period, by)
    return render(request, "usage/usage.html", context)


@require_GET
def usage_export(request: HtmxRequest) -> HttpResponse:
    """Download the usage of each hour or day as CSV."""
    period = read_period(request.GET, default=DEFAULT_RANGE)
    by = read_breakdown(request)
    owner = get_slots_owner(request.user, mine=is_only_mine(request))
    lines = list_usage(by, period, owner)
    names = name_keys(by, {line.key for line in lines}, request.user)
    answer = HttpResponse(content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="usage-by-{by}.csv"'
    sheet = csv.writer(answer)
    sheet.writerow([period.unit, f"{by}_id", by, "runs", "tokens", "cost"])
    for line in lines:
        runs, tokens, cost = line.sums
        begin, name = line.begin.isoformat(), format_csv_cell(names[line.key])
        key = format_csv_cell(line.key)
        sheet.writerow([begin, key, name, runs, tokens, f"{cost:.6f}"])
    return answer


def is_only_mine(request: HtmxRequest) -> bool:
    """Whether only the user's own runs count; others never see more."""
    return request.GET.get("mine") == "1" or not request.user.is_superuser


def list_breakdowns(request: HtmxRequest) -> dict[str, Any]:
    """Return the labels of the breakdowns; one's own runs have one person."""
    return {
        name: one.label
        for name, one in BREAKDOWNS.items()
        if name != "person" or not is_only_mine(request)
    }


def read_breakdown(request: HtmxRequest) -> str:
    by = request.GET.get("by", "")
    return by if by in list_breakdowns(request) else "agent"


def build_usage_context(
    request: HtmxRequest, period: HomePeriod, by: str
) -> dict[str, Any]:
    """Return figures, tables and the chart; nothing if nothing was used."""
    user, mine = request.user, is_only_mine(request)
    owner = get_slots_owner(user, mine=mine)
    figures = load_ended_figures(period, owner)
    if not figures.sums.total and not figures.sums.tokens:
        return {"is_empty": True}
    by_cost = bool(figures.sums.cost)
    tables = {
        name: build_usage_table(name, period, owner, user, by_cost=by_cost)
        for name in list_breakdowns(request)
    }
    return {
        "sums": figures.sums,
        "unpriced": find_unpriced_models(sum_usage(period.slots(owner), "model"), user),
        "figures": build_usage_figures(period, figures),
        "by_cost": by_cost,
        "tables": tables.values(),
        "chart": build_usage_chart(tables[by], period, owner, by_cost=by_cost),
    }
