"""Scoring rules: the list, the form, the page with its charts, pausing, deleting."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.forms.rules.rule import ScoringRuleForm
from runs.htmx import HtmxRequest
from runs.models import Agent, ScoringRule
from runs.services.rules.figures import (
    count_scored_runs,
    load_rule_totals,
    load_scores_by_day,
    load_scores_by_version,
)
from runs.services.rules.manage_rule import (
    set_scoring_rule_enabled,
)
from runs.services.rules.score_runs import list_unavailable_evaluators
from runs.ui.evaluation.day_bars import build_day_chart
from runs.ui.frame.undo import add_switch_message
from runs.ui.list_search import get_search_text, search_rows
from runs.views.lists.page import render_list
from runs.views.rules.scored_runs import build_scored_runs_context
from runs.whole_number import parse_whole_number


@require_GET
def rule_list(request: HtmxRequest) -> HttpResponse:
    """Show the user's rules with what failed in the last 30 days."""
    rules = (
        ScoringRule.objects.visible_to(request.user)
        .select_related("agent", "owner")
        .prefetch_related("evaluators")
        .annotate(runs=count_scored_runs(), failed=count_scored_runs(passed=False))
    )
    query = get_search_text(request)
    rules = search_rows(rules, query, "name", "agent__name", "owner__username")
    actions = ["pause", "resume", "delete"]
    incomplete = {rule.pk for rule in rules if list_unavailable_evaluators(rule)}
    more = {"actions": actions, "incomplete": incomplete}
    return render_list(request, "rule", rows=rules, q=query, **more)


@require_http_methods(["GET", "POST"])
def rule_create(request: HtmxRequest) -> HttpResponse:
    """Create a rule, for the agent in the query if there is one."""
    asked = parse_whole_number(request.GET.get("agent", "")) or 0
    agents = Agent.objects.usable_by(request.user)
    agent = agents.filter(pk=asked).first()
    form = ScoringRuleForm(
        request.POST or None,
        instance=ScoringRule(owner=request.user),
        initial={"agent": agent},
    )
    if form.is_valid():
        rule = form.save()
        messages.success(
            request,
            _("Rule %(name)s created. Runs that end from now on are scored.")
            % {"name": rule},
        )
        return redirect("rule-detail", pk=rule.pk)
    return render(request, "rules/form.html", {"form": form, "rule": None})


@require_http_methods(["GET", "POST"])
def rule_edit(request: HtmxRequest, pk: int) -> HttpResponse:
    rule = get_rule(request, pk)
    form = ScoringRuleForm(request.POST or None, instance=rule)
    if form.is_valid():
        form.save()
        messages.success(request, _("Rule %(name)s saved.") % {"name": rule})
        return redirect("rule-detail", pk=pk)
    context = {"form": form, "rule": ScoringRule.objects.get(pk=pk)}
    return render(request, "rules/form.html", context)


@require_GET
def rule_detail(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the scores by day and version, and the latest runs."""
    rule = get_rule(request, pk)
    context = {
        "rule": rule,
        "evaluators": rule.evaluators.order_by("name"),
        "unavailable": list_unavailable_evaluators(rule),
        "totals": load_rule_totals(rule),
        "chart": build_day_chart(load_scores_by_day(rule.scored.all())),
        "versions": load_scores_by_version(rule),
        **build_scored_runs_context(request, rule.scored.all()),
    }
    return render(request, "rules/detail.html", context)


@require_POST
def rule_switch(request: HtmxRequest, pk: int) -> HttpResponse:
    """Pause a rule, or resume it; runs that end while it is paused are not scored."""
    rule = get_rule(request, pk)
    is_on = request.POST.get("on") == "1"
    set_scoring_rule_enabled(rule, is_on=is_on)
    add_switch_message(request, "rule", rule, is_on=is_on)
    return redirect("rule-detail", pk=pk)


def get_rule(request: HtmxRequest, pk: int) -> ScoringRule:
    """Return a rule of the user; otherwise raise 404."""
    rows = ScoringRule.objects.visible_to(request.user)
    related = ("agent", "owner", "queue", "dataset", "webhook")
    return get_object_or_404(rows.select_related(*related), pk=pk)
