"""The runs that rules have scored: of one rule on its page, of all on their own."""

from typing import Any

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest
from runs.models import Run, ScoredRun, ScoringRule
from runs.services.rules.figures import filter_shown_days
from runs.ui.list_search import encode_query, get_search_text, search_rows
from runs.views.run_list.filters import parse_end, parse_time

RUNS_PER_PAGE = 50


@require_GET
def scored_run_list(request: HtmxRequest) -> HttpResponse:
    """Show the latest scored runs of all rules of the user, or of one day."""
    rules = ScoringRule.objects.visible_to(request.user)
    if is_mine := request.GET.get("mine") == "1":
        rules = rules.filter(owner=request.user)
    rows = ScoredRun.objects.filter(rule__in=rules).select_related("rule")
    context = build_scored_runs_context(request, rows)
    return render(request, "rules/runs.html", {**context, "mine": is_mine})


def build_scored_runs_context(
    request: HtmxRequest, scored: QuerySet[ScoredRun]
) -> dict[str, Any]:
    """Filter the runs by the query: `show=failed`, `day=2026-11-20`."""
    rows = filter_shown_days(scored.exclude(state=ScoredRun.State.WAITING))
    show = "failed" if request.GET.get("show") == "failed" else ""
    if show:
        rows = rows.filter(passed=False)
    asked = request.GET.get("day", "").strip()[:40]
    is_day = "T" not in asked
    begin, end = (parse_time(asked), parse_end(asked)) if is_day else (None, None)
    if begin is not None and end is not None:  # as many as the bar of the day counts
        rows = rows.filter(
            passed__isnull=False, scored_at__gte=begin, scored_at__lt=end
        )
    wrong = _("%(value)s is not a date. Enter a date like 2026-11-21.")
    rows = rows.select_related("run__version", "run__agent").prefetch_related(
        "scores__revision__evaluator"
    )
    text = get_search_text(request)
    rows = search_rows(rows, text, "run__title", "rule__name")
    query = request.GET.copy()
    query.pop("page", None)
    visible = Run.objects.visible_to(request.user)
    newest = rows.filter(run__in=visible).order_by("-scored_at", "-pk")
    return {
        "show": show,
        "q": text,
        "searched": encode_query({"q": text}),
        "kept": {
            name: request.GET[name]
            for name in ("show", "day", "mine")
            if request.GET.get(name)
        },
        "day": begin,
        "day_problem": wrong % {"value": asked} if asked and begin is None else "",
        "page": Paginator(newest, RUNS_PER_PAGE).get_page(request.GET.get("page")),
        "page_query": f"?{query.urlencode()}",
    }
