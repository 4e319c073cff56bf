"""Retention rules, what they would delete, and the jobs that delete it."""

from typing import Any, NamedTuple

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.forms.retention import AgentRetentionForm, RetentionForm
from runs.htmx import HtmxRequest, render_page_or_part
from runs.models import AgentRetention, DeletionJob, RetentionRule
from runs.services.retention.jobs import (
    create_prune_job,
    find_next_daily_time,
    stop_job,
)
from runs.services.retention.preview import AGENTS, count_prunable
from runs.services.retention.rules import (
    RetentionRules,
    load_rules,
    save_agent_retention,
    save_rules,
)
from runs.views.lists.confirm import is_confirmed, render_confirmation

SHOWN_JOBS = 10
NOUN_LABELS = {
    **dict(RetentionRule.Kind.choices),
    "runs": gettext_lazy("Runs"),
    "sub_agent_runs": gettext_lazy("Sub-agent runs"),
    AGENTS: gettext_lazy("Agents with own rules"),
}
"""Of what jobs and previews count."""


class CountRow(NamedTuple):
    """How many rows of one kind."""

    label: str
    rows: int


class JobRow(NamedTuple):
    """A deletion job with what it has deleted."""

    job: DeletionJob
    counts: list[CountRow]


def require_administrator(request: HtmxRequest) -> None:
    """Raise a 403 for everyone else."""
    if not request.user.is_superuser:
        raise PermissionDenied


@require_http_methods(["GET", "POST"])
def retention(request: HtmxRequest) -> HttpResponse:
    """Show rules and jobs; POST saves the rules. HTMX polls the jobs."""
    require_administrator(request)
    rules = load_rules()
    form = RetentionForm(request.POST or None, rules=rules)
    if form.is_valid():
        if save_rules(form.cleaned_data):
            messages.success(request, _("Retention rules saved."))
        return redirect("retention")
    context = {
        "form": form,
        "agent_form": AgentRetentionForm(),
        "rules": rules,
        **build_jobs_context(),
    }
    if not request.htmx:
        agents = AgentRetention.objects.select_related("agent")
        context["agents"] = agents.order_by("agent__name")
    return render_page_or_part(
        request, "retention/rules.html", "retention/_jobs.html", context
    )


def build_jobs_context() -> dict[str, Any]:
    jobs = DeletionJob.objects.select_related("by")
    shown = [JobRow(job, list_counts(job.counts)) for job in jobs[:SHOWN_JOBS]]
    return {
        "jobs": shown,
        "has_open_job": any(row.job.status == "open" for row in shown),
        "next_at": find_next_daily_time(),
    }


def list_counts(counts: dict[str, int]) -> list[CountRow]:
    """Return the counts with labels, in the order of the labels."""
    return [
        CountRow(str(label), counts[noun])
        for noun, label in NOUN_LABELS.items()
        if noun in counts
    ]


@require_GET
def retention_preview(request: HtmxRequest) -> HttpResponse:
    """Render how many rows the rules of a form would delete, saved or not."""
    require_administrator(request)
    rules = load_rules()
    form = RetentionForm(request.GET or None, rules=rules)
    context: dict[str, Any] = {"form": form}
    if form.is_valid():
        rules = form.to_rules(rules.agents)
    if form.is_valid() or not form.is_bound:
        context |= build_preview_context(rules)
    return render(request, "retention/_preview.html", context)


def build_preview_context(rules: RetentionRules) -> dict[str, Any]:
    try:
        counts = count_prunable(rules, timezone.now())
    except DatabaseError:  # a very large site: the rules can be saved all the same
        return {"is_too_large": True}
    return {"counts": list_counts(counts), "total": sum(counts.values())}


@require_http_methods(["GET", "POST"])
def retention_prune(request: HtmxRequest) -> HttpResponse:
    """Show what would be deleted now; POST starts the job."""
    require_administrator(request)
    rules = load_rules()
    if request.method == "POST":
        create_prune_job(by=request.user)
        messages.success(request, _("Pruning starts within 10 seconds."))
        return redirect("retention")
    context = {"rules": rules, **build_preview_context(rules)}
    return render(request, "retention/prune.html", context)


@require_POST
def deletion_job_stop(request: HtmxRequest, pk: int) -> HttpResponse:
    """Stop an open job after its current batch."""
    require_administrator(request)
    jobs = DeletionJob.objects.filter(purpose=DeletionJob.Purpose.RULES)
    if not stop_job(get_object_or_404(jobs, pk=pk), by=request.user):
        messages.info(request, _("The job has already ended."))
    return redirect("retention")


@require_POST
def agent_retention(request: HtmxRequest) -> HttpResponse:
    """Give an agent a rule of its own."""
    require_administrator(request)
    form = AgentRetentionForm(request.POST)
    if not form.is_valid():
        for name, errors in form.errors.items():
            messages.error(request, f"{form.fields[name].label}: {errors[0]}")
        return redirect("retention")
    save_agent_retention(form.cleaned_data["agent"], form.cleaned_data["days"])
    messages.success(request, _("Retention rules saved."))
    return redirect("retention")


@require_POST
def agent_retention_delete(request: HtmxRequest, pk: int) -> HttpResponse:
    """Remove the rule of an agent: those of all agents apply again."""
    require_administrator(request)
    rule = get_object_or_404(AgentRetention.objects.select_related("agent"), pk=pk)
    if not is_confirmed(request):
        return render_confirmation(
            request,
            question=_("Remove the rule of %(agent)s?") % {"agent": rule.agent.name},
            effect=_(
                "The rules of all agents then apply to its runs, and may delete them "
                "sooner."
            ),
            do="remove",
            here=reverse("retention"),
        )
    rule.delete()
    messages.success(request, _("Retention rules saved."))
    return redirect("retention")
