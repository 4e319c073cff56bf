"""Sub-agent runs on the page of the run that started them."""

from typing import NamedTuple

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest
from runs.models import AgentStep, Run
from runs.services.health.workers import is_lease_expired
from runs.store.database_clock import read_time_for_runs
from runs.views.run.rows import (
    TimelineRow,
    build_call_row,
    build_step_row,
    query_agent_steps,
    query_model_calls,
)
from runs.views.run.timeline import load_timeline

MAX_CHILD_ROWS = 50
"""Rows of a sub-agent run on its caller's page; its own page has the others."""


class AncestorRun(NamedTuple):
    """A run above another, and the number of the row that started that one."""

    run: Run
    number: int


class ChildOutline(NamedTuple):
    """The rows of a sub-agent run on the time scale of the page."""

    child: Run
    page: Run
    prefix: str
    """Prefix of its row numbers: `10.` or `10.2.`"""
    depth: int
    rows: list[TimelineRow]
    omitted_count: int
    """Number of rows before these."""


@require_GET
def run_outline(request: HtmxRequest, pk: int) -> HttpResponse:
    """Render the steps of a sub-agent run, for below its caller's step."""
    child = get_child_run(request, pk)
    shown = build_child_outline(child, request.GET.get("page", ""))
    return render(request, "runs/_outline.html", {"outline": shown})


@require_GET
def run_brief(request: HtmxRequest, pk: int) -> HttpResponse:
    return render(request, "runs/_brief.html", {"child": get_child_run(request, pk)})


def get_child_run(request: HtmxRequest, pk: int) -> Run:
    """Return the run if it is visible and was started by another run."""
    runs = Run.objects.visible_to(request.user).filter(parent_step__isnull=False)
    return get_object_or_404(runs.select_related("agent", "version"), pk=pk)


def list_ancestors(run: Run) -> list[AncestorRun]:
    """Return the runs above `run`, from the top down."""
    found: list[AncestorRun] = []
    step_id = run.parent_step_id
    while step_id is not None:
        steps = AgentStep.objects.select_related("run__agent", "model_call")
        step = steps.only(
            *("index", "run__title", "run__parent_step", "run__started_at"),
            *("run__agent__name", "model_call__number"),
        ).get(pk=step_id)
        found.append(AncestorRun(step.run, step.index + step.model_call.number + 2))
        step_id = step.run.parent_step_id
    return found[::-1]


def build_child_outline(child: Run, page: str) -> ChildOutline:
    """Return the rows of `child` for the page of a run above it."""
    above = list_ancestors(child)
    places = [n for n, one in enumerate(above) if str(one.run.pk) == page]
    shown = above[places[0] :] if places else above[-1:]
    timeline = load_timeline(shown[0].run)
    calls = query_model_calls([child.pk]).order_by("-number")[:MAX_CHILD_ROWS]
    steps = query_agent_steps([child.pk]).order_by("-index")[:MAX_CHILD_ROWS]
    lost = is_lease_expired(
        child.status, child.lease_until, read_time_for_runs([child])
    )
    rows = [
        *(build_call_row(call, timeline, []) for call in calls),
        *(build_step_row(step, timeline, is_lost=lost) for step in steps),
    ]
    rows.sort(key=lambda row: row.number)
    rows = rows[-MAX_CHILD_ROWS:]
    return ChildOutline(
        child=child,
        page=shown[0].run,
        prefix="".join(f"{one.number}." for one in shown),
        depth=len(shown) + 1,
        rows=rows,
        omitted_count=rows[0].number - 1 if rows else 0,
    )
