"""The page that forks a run at one of its steps."""

from typing import Any, NamedTuple

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from runs.engine.types import AgentSpec
from runs.forms.fork import ForkForm
from runs.forms.limits import LimitsForm
from runs.htmx import HtmxRequest
from runs.models import ModelCall, Resume, Run
from runs.services.branch_talk import is_own_turn
from runs.services.errors import CannotFork, InputsRefused, RunsError, SpecRefused
from runs.services.fork_point import ForkPoint, end_row, fork_point, may_go_on
from runs.services.fork_run import fork_run, has_tool, may_edit_agent, spec_then
from runs.views.plain_words import cut, words_of_input, words_of_reply
from runs.views.run_context import loaded
from runs.views.run_detail import as_code


class Kept(NamedTuple):
    """What a fork reuses, in words."""

    rows: int
    cost: Any
    later: int
    """Calls of the same reply behind the chosen one, which keep their results."""


class Rounds(NamedTuple):
    """How many rounds a fork reuses, and how many the run was allowed there."""

    kept: int
    most: int | None

    @property
    def left(self) -> int | None:
        """How many it could still do; None without a limit."""
        return max(self.most - self.kept, 0) if self.most else None


@require_http_methods(["GET", "POST"])
def fork(request: HtmxRequest, pk: int, number: int | None = None) -> HttpResponse:
    """Show what can be changed at a step; POST starts the fork."""
    run = get_object_or_404(loaded(Run.objects.visible_to(request.user)), pk=pk)
    point = point_of(run, number)
    if point is None:
        messages.error(request, "There is no such step to fork at.")
        return redirect("run-detail", pk)
    may_edit = may_edit_agent(run.agent, request.user)
    resumes = Resume.objects.filter(run=run)
    spec = spec_then(run, resumes, number=point.number)
    typed = request.POST if request.method == "POST" else None
    form = ForkForm(point, spec, typed, user=request.user, may_edit=may_edit)
    limits = LimitsForm(spec.executor, typed, initial=proposed(point, spec))
    if form.is_valid() & limits.is_valid():
        edits = form.edits(limits.changed())
        try:
            new = fork_run(point, by=request.user, edits=edits)
        except InputsRefused as refused:
            for field, message in refused.errors:
                form.take(f"inputs.{field}", message)
        except SpecRefused as refused:
            for field, message in refused.errors:
                form.take(field, message)
        except RunsError as refused:
            form.add_error(None, str(refused))
        else:
            return redirect("run-detail", new.pk)
    context = {"run": run, "point": point, "form": form, "limits": limits}
    context["rounds"] = Rounds(rounds_kept(point), spec.executor.max_iterations)
    return render(request, "runs/fork.html", context | shown(point, form))


def proposed(point: ForkPoint, spec: AgentSpec) -> dict[str, int]:
    """Return twice the rounds where none are left at this point.

    The run may have got more only later, when it was resumed.
    """
    most = spec.executor.max_iterations
    return {"max_iterations": most * 2} if most and rounds_kept(point) >= most else {}


def rounds_kept(point: ForkPoint) -> int:
    """Return how many rounds a fork from `point` begins with."""
    if point.call is None:
        return point.run.rounds
    return point.call.round if point.step is not None else point.call.round - 1


def point_of(run: Run, row: int | None) -> ForkPoint | None:
    """Return the chosen point; without a choice the end, else the last reply."""
    if row is None:
        row = end_row(run) if may_go_on(run) else last_call_row(run)
    try:
        return fork_point(run, row)
    except CannotFork:
        return None


def last_call_row(run: Run) -> int:
    """Return the row of the newest reply; 0 before there is one."""
    call = ModelCall.objects.filter(run=run).order_by("-number").first()
    return call.number + call.at_index + 1 if call is not None else 0


def shown(point: ForkPoint, form: ForkForm) -> dict[str, Any]:
    """Return what the page says about the step."""
    run, step, call = point.run, point.step, point.call
    words, rows = "", form.tools.rows()
    if step is not None:
        words = words_of_input(step.tool_input)
    elif call is not None:
        words = words_of_reply(call.reply, purpose=call.purpose)
    # The reply that made the chosen step is kept, a chosen reply is not.
    count = point.number + (step is not None)
    calls = ModelCall.objects.filter(run=run, number__lt=count)
    earlier = point.row - 1 if not point.is_end else point.number + point.at_index
    return {
        "words": cut(words),
        "kept": Kept(
            earlier,
            sum((one.cost for one in calls.only("cost")), 0),
            sum(row.is_answered and row.index > step.index for row in point.siblings)
            if step is not None
            else 0,
        ),
        "input": as_code(step.tool_input) if step is not None else "",
        "has_tool": has_tool(form.spec, point),
        "others": point.open_siblings,
        "tool_rows": [row for row in rows if not row.is_agent],
        "agent_rows": [row for row in rows if row.is_agent],
        "branches": is_own_turn(run, form.user),
        "has_errors": bool(form.errors),
    }
