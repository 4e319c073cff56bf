"""The page that forks a run at one of its steps."""

from typing import Any, NamedTuple

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from runs.engine.types import AgentSpec
from runs.forms.runs.fork import ForkForm
from runs.forms.runs.limits import LimitsForm
from runs.htmx import HtmxRequest
from runs.models import ModelCall, Resume, Run
from runs.services.conversations.messages import is_in_own_conversation
from runs.services.errors import CannotFork, InputsRefused, RunsError, SpecRefused
from runs.services.forks.fork import (
    fork_run,
    get_spec_at_call,
    has_forked_tool,
    may_edit_agent,
)
from runs.services.forks.point import (
    ForkPoint,
    can_fork_at_end,
    get_end_row,
    load_fork_point,
)
from runs.ui.list_of_run import keep_list
from runs.ui.summaries import summarize_input, summarize_reply, truncate_line
from runs.views.run.context import select_page_relations
from runs.views.run.step_detail import render_arguments


class ForkReuseSummary(NamedTuple):
    rows: int
    cost: Any
    later: int
    """Later calls of the same reply, which keep their results."""


class ForkRounds(NamedTuple):
    """Rounds that a fork reuses, and the round limit of the run."""

    reused: int
    limit: int | None

    @property
    def left(self) -> int | None:
        """Rounds left; None without a limit."""
        return max(self.limit - self.reused, 0) if self.limit else None


@require_http_methods(["GET", "POST"])
def run_fork(request: HtmxRequest, pk: int, number: int | None = None) -> HttpResponse:
    """Show what can be changed at a step; POST starts the fork."""
    run = get_object_or_404(
        select_page_relations(Run.objects.visible_to(request.user)), pk=pk
    )
    point = choose_fork_point(run, number)
    if point is None:
        messages.error(request, _("Step not found. Select a step to fork at."))
        return redirect("run-detail", pk)
    may_edit = may_edit_agent(run.agent, request.user)
    resumes = Resume.objects.filter(run=run)
    spec = get_spec_at_call(run, resumes, number=point.number)
    typed = request.POST if request.method == "POST" else None
    form = ForkForm(point, spec, typed, user=request.user, may_edit=may_edit)
    limits = LimitsForm(spec.executor, typed, initial=propose_fork_limits(point, spec))
    if form.is_valid() & limits.is_valid():
        edits = form.edits(limits.changed_options())
        try:
            new = fork_run(point, by=request.user, edits=edits)
        except InputsRefused as refused:
            for field, message in refused.errors:
                form.add_field_error(f"inputs.{field}", message)
        except SpecRefused as refused:
            for field, message in refused.errors:
                form.add_field_error(field, message)
        except RunsError as refused:
            form.add_error(None, str(refused))
        else:
            return redirect("run-detail", new.pk)
    context = {"run": run, "point": point, "form": form, "limits": limits}
    cancel_url = f"{reverse('run-detail', args=[pk])}?step={point.row}"
    context["cancel_url"] = keep_list(request, cancel_url)
    context["rounds"] = ForkRounds(
        count_reused_rounds(point), spec.executor.max_iterations
    )
    return render(request, "runs/fork.html", context | build_fork_context(point, form))


def propose_fork_limits(point: ForkPoint, spec: AgentSpec) -> dict[str, int]:
    """Return twice the rounds if none are left at this point.

    A later resume may have raised the limit.
    """
    most = spec.executor.max_iterations
    return (
        {"max_iterations": most * 2}
        if most and count_reused_rounds(point) >= most
        else {}
    )


def count_reused_rounds(point: ForkPoint) -> int:
    if point.call is None:
        return point.run.rounds
    return point.call.round if point.step is not None else point.call.round - 1


def choose_fork_point(run: Run, row: int | None) -> ForkPoint | None:
    """Return the selected point, else the end of the run, else the last reply."""
    if row is None:
        row = get_end_row(run) if can_fork_at_end(run) else get_last_call_row(run)
    try:
        return load_fork_point(run, row)
    except CannotFork:
        return None


def get_last_call_row(run: Run) -> int:
    """Return the row of the newest reply; 0 before there is one."""
    call = ModelCall.objects.filter(run=run).order_by("-number").first()
    return call.number + call.at_index + 1 if call is not None else 0


def build_fork_context(point: ForkPoint, form: ForkForm) -> dict[str, Any]:
    run, step, call = point.run, point.step, point.call
    words, rows = "", form.tools.rows()
    if step is not None:
        words = summarize_input(step.tool_input)
    elif call is not None:
        words = summarize_reply(call.reply, purpose=call.purpose)
    # The reply that requested a selected step is reused, a selected reply is not.
    count = point.number + (step is not None)
    calls = ModelCall.objects.filter(run=run, number__lt=count)
    earlier = point.row - 1 if not point.is_end else point.number + point.at_index
    return {
        "words": truncate_line(words),
        "kept": ForkReuseSummary(
            earlier,
            sum((one.cost for one in calls.only("cost")), 0),
            sum(row.is_answered and row.index > step.index for row in point.siblings)
            if step is not None
            else 0,
        ),
        "input": render_arguments(step.tool_input) if step is not None else "",
        "has_tool": has_forked_tool(form.spec, point),
        "others": point.open_siblings,
        "tool_rows": [row for row in rows if not row.is_agent],
        "agent_rows": [row for row in rows if row.is_agent],
        "branches": is_in_own_conversation(run, form.user),
        "has_errors": bool(form.errors),
    }
