"""A run as a file: one HTML page that needs nothing else, or JSON."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.utils.html import escape
from django.views.decorators.http import require_GET
from pydantic_core import to_json

from runs.api.shapes import call_json, run_json, step_json, when
from runs.htmx import HtmxRequest
from runs.models import AgentStep, ModelAttempt, ModelCall, Run
from runs.services.mask_secrets import Mask
from runs.views.run_document import BATCH, document_of

SHEETS = ("tokens", "base", "components", "forks")
FORMAT = "agentsite-run/1"
"""Name and version of the JSON file's shape."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What the file may load where it is opened: nothing but what is in it."""


@require_GET
def as_html(request: HtmxRequest, pk: int) -> HttpResponse:
    """Give one self-contained HTML file."""
    run = exported(request, pk)
    context = {"document": document_of(run, names_agent=True), "is_file": True}
    body = render_to_string("runs/_document.html", context)
    icons = render_to_string("parts/_icons.html")
    title = escape(f"Run {run.pk}, {run.get_status_display().lower()}")
    page = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="robots" content="noindex">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>\n{styles()}\n</style>\n</head>\n"
        f'<body>\n{icons}\n<main class="page gap">\n{body}\n</main>\n</body>\n</html>\n'
    )
    return file(page.encode("utf-8", "replace"), f"run-{pk}.html", "text/html")


@cache
def styles() -> str:
    """Return the style sheets as one text, without comments."""
    found = (finders.find(f"runs/css/{name}.css") for name in SHEETS)
    text = "\n".join(Path(str(path)).read_text() for path in found)
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).replace("</", "<\\/")


@require_GET
def as_json(request: HtmxRequest, pk: int) -> HttpResponse:
    """Give the run with all its model calls, steps and failed attempts as JSON."""
    run = exported(request, pk)
    mask = Mask(run)
    shape = {
        "format": FORMAT,
        "run": mask.json(run_json(run)),
        "fork": fork_json(run),
        "model_calls": list(calls_of(run, mask)),
        "steps": list(steps_of(run, mask)),
        "attempts": list(attempts_of(run, mask)),
    }
    text = to_json(shape, indent=2, inf_nan_mode="null")
    return file(text, f"run-{pk}.json", "application/json")


def exported(request: HtmxRequest, pk: int) -> Run:
    """Return the run, where the person may see it."""
    runs = Run.objects.visible_to(request.user).select_related(
        "agent__owner", "owner", "version"
    )
    return get_object_or_404(runs, pk=pk)


def fork_json(run: Run) -> dict[str, Any] | None:
    """Return where the run parts from its parent; None for one that is no fork."""
    if run.fork_index is None:
        return None
    return {
        "of": run.forked_from_id,
        "at": run.fork_row,
        "edits": run.fork_edits,
    }


def calls_of(run: Run, mask: Mask) -> Iterator[dict[str, Any]]:
    """Yield the model calls in order."""
    for call in ModelCall.objects.filter(run=run).order_by("number").iterator(BATCH):
        yield {
            **mask.json(call_json(call)),
            "settings": mask.json(call.settings),
            "reused": call.is_copied,
            "edited": call.is_edited,
        }


def steps_of(run: Run, mask: Mask) -> Iterator[dict[str, Any]]:
    """Yield the steps in order."""
    rows = AgentStep.objects.filter(run=run).order_by("index")
    for step in rows.defer("value").iterator(BATCH):
        shape = step_json(step)
        observation = shape["observation"]
        yield {
            **mask.json(shape),
            "observation": None if observation is None else mask.either(observation),
            "started_at": when(step.started_at),
            "reused": step.is_copied,
            "edited": step.is_edited,
        }


def attempts_of(run: Run, mask: Mask) -> Iterator[dict[str, Any]]:
    """Yield the failed attempts of model calls."""
    for one in ModelAttempt.objects.filter(run=run):
        yield {
            "model_call": one.number,
            "attempt": one.attempt,
            "code": one.code,
            "message": mask.text(one.message),
            "started_at": when(one.started_at),
            "duration_ms": round(one.elapsed * 1000),
        }


def file(body: bytes, name: str, kind: str) -> HttpResponse:
    """Return `body` as a download."""
    response = HttpResponse(body, content_type=f"{kind}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response
