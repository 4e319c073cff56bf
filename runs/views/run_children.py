"""Runs of called agents on their caller's page, and the way back up."""

from typing import NamedTuple

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest
from runs.models import AgentStep, Run
from runs.views.run_rows import Row, call_row, calls_of, step_row, steps_of
from runs.views.run_state import is_lost
from runs.views.run_times import timeline_of

MOST_ROWS = 50
"""Rows of a child that its caller's page shows; the rest is on its own page."""


class Above(NamedTuple):
    """A run that waits for another, or did, and the row with which it does."""

    run: Run
    number: int


class Outline(NamedTuple):
    """The rows of a child run, on the time scale of the page they are shown on."""

    child: Run
    page: Run
    prefix: str
    """What its rows' numbers begin with: `10.` or `10.2.`"""
    depth: int
    rows: list[Row]
    left_out: int
    """How many rows come before these."""


@require_GET
def outline(request: HtmxRequest, pk: int) -> HttpResponse:
    """Give the steps of a child run, to be put below its caller's step."""
    child = child_of(request, pk)
    shown = outline_of(child, request.GET.get("page", ""))
    return render(request, "runs/_outline.html", {"outline": shown})


@require_GET
def brief(request: HtmxRequest, pk: int) -> HttpResponse:
    """Give where a child run stands."""
    return render(request, "runs/_brief.html", {"child": child_of(request, pk)})


def child_of(request: HtmxRequest, pk: int) -> Run:
    """Return the run, where the person may see it and another run has started it."""
    runs = Run.objects.visible_to(request.user).filter(parent_step__isnull=False)
    return get_object_or_404(runs.select_related("agent", "version"), pk=pk)


def above_of(run: Run) -> list[Above]:
    """Return the runs above `run`, the topmost first."""
    found: list[Above] = []
    step_id = run.parent_step_id
    while step_id is not None:
        steps = AgentStep.objects.select_related("run__agent", "model_call")
        step = steps.only(
            *("index", "run__title", "run__parent_step", "run__started_at"),
            *("run__agent__name", "model_call__number"),
        ).get(pk=step_id)
        found.append(Above(step.run, step.index + step.model_call.number + 2))
        step_id = step.run.parent_step_id
    return found[::-1]


def outline_of(child: Run, page: str) -> Outline:
    """Return the rows of `child` as they stand on the page of a run above it."""
    above = above_of(child)
    places = [n for n, one in enumerate(above) if str(one.run.pk) == page]
    shown = above[places[0] :] if places else above[-1:]
    timeline = timeline_of(shown[0].run)
    calls = calls_of([child.pk]).order_by("-number")[:MOST_ROWS]
    steps = steps_of([child.pk]).order_by("-index")[:MOST_ROWS]
    lost = is_lost(child.status, child.lease_until)
    rows = [
        *(call_row(call, timeline, []) for call in calls),
        *(step_row(step, timeline, is_lost=lost) for step in steps),
    ]
    rows.sort(key=lambda row: row.number)
    rows = rows[-MOST_ROWS:]
    return Outline(
        child=child,
        page=shown[0].run,
        prefix="".join(f"{one.number}." for one in shown),
        depth=len(shown) + 1,
        rows=rows,
        left_out=rows[0].number - 1 if rows else 0,
    )
