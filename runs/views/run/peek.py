"""One run beside the list: its input, its answer and its latest steps in short."""

import json
from typing import NamedTuple

from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.safestring import SafeString
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest
from runs.models import Run
from runs.services.health.workers import can_be_taken_over, is_lease_expired
from runs.services.search.human_waits import get_work_seconds, load_human_waits
from runs.store.database_clock import read_time_for_runs
from runs.ui.list_state import get_run_state, knows_list_state
from runs.ui.markdown import render_json, render_markdown
from runs.ui.run_list_rows import annotate_current_tool, describe_activity
from runs.ui.time_scale import BASE_SECONDS
from runs.views.run.params import parse_run_page_params
from runs.views.run.rows import (
    TimelineRow,
    build_call_row,
    build_step_row,
    query_agent_steps,
    query_model_calls,
)
from runs.views.run.timeline import load_timeline

MAX_PEEKED_STEPS = 30
MAX_PEEKED_CHARACTERS = 10_000
"""Of the input and of the answer; the run's page has the rest."""


class PeekedStep(NamedTuple):
    """A step with its place on the time scale of the run, in percent."""

    row: TimelineRow
    x: str
    width: str


@require_GET
def run_peek(request: HtmxRequest, pk: int) -> HttpResponse:
    visible = annotate_current_tool(Run.objects.visible_to(request.user))
    run = get_object_or_404(visible.prefetch_related("tags"), pk=pk)
    if knows_list_state(request, get_run_state(run)):
        return HttpResponse(status=204)
    now = read_time_for_runs([run])
    has_worker = can_be_taken_over([run], now)
    note, tone = describe_activity(run, now, has_worker=has_worker)
    waited = load_human_waits([run.pk]).get(run.pk, 0.0)
    steps = list_peeked_steps(run)
    context = {
        "run": run,
        "choice": parse_run_page_params(request.GET),
        "inputs": format_inputs(run.inputs),
        "answer": render_answer(run),
        "is_text": isinstance(run.answer, str),
        "note": note,
        "tone": tone,
        "seconds": get_work_seconds(run, waited),
        "steps": steps,
        "earlier": steps[0].row.number - 1 if steps else 0,
        "tool_calls": run.steps.aggregate(n=Count("pk"))["n"],
    }
    return render(request, "runs/_peek.html", context)


def format_inputs(inputs: dict[str, object]) -> str:
    """Return the inputs as text; a single one without its name."""
    values = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in inputs.items()
    }
    if len(values) == 1:
        return next(iter(values.values()))[:MAX_PEEKED_CHARACTERS]
    lines = "\n".join(f"{name}: {value}" for name, value in values.items())
    return lines[:MAX_PEEKED_CHARACTERS]


def render_answer(run: Run) -> SafeString | str:
    """Return the beginning of the answer as HTML; empty without one."""
    output = run.answer
    if output in (None, ""):
        return ""
    if isinstance(output, str):
        return render_markdown(output[:MAX_PEEKED_CHARACTERS])
    return render_json(output)


def list_peeked_steps(run: Run) -> list[PeekedStep]:
    """Return the latest model calls and tool calls, in their order."""
    timeline = load_timeline(run)
    lost = is_lease_expired(run.status, run.lease_until, read_time_for_runs([run]))
    calls = query_model_calls([run.pk]).order_by("-number")[:MAX_PEEKED_STEPS]
    steps = query_agent_steps([run.pk]).order_by("-index")[:MAX_PEEKED_STEPS]
    rows = [
        *(build_call_row(call, timeline, []) for call in calls),
        *(build_step_row(step, timeline, is_lost=lost) for step in steps),
    ]
    rows.sort(key=lambda row: row.number)
    end = timeline.end() or 1.0
    return [place_step(row, end) for row in rows[-MAX_PEEKED_STEPS:]]


def place_step(row: TimelineRow, end: float) -> PeekedStep:
    """Return a step with its bar from the beginning of its work to the end."""
    bars = [bar for bar in row.bars if bar.tone != "wait"]
    factor = BASE_SECONDS / end
    first = min((float(bar.x[:-1]) for bar in bars), default=0.0)
    last = max((float(bar.x[:-1]) + float(bar.width[:-1]) for bar in bars), default=0.0)
    x = min(first * factor, 99.0)
    width = min(max((last - first) * factor, 1.0), 100 - x) if bars else 0.0
    return PeekedStep(row, f"{x:.2f}%", f"{width:.2f}%")
