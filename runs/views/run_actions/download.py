"""A run as a file: a self-contained HTML page, JSON, or a scenario."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from django.contrib import messages
from django.contrib.staticfiles import finders
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET
from pydantic_core import to_json

from runs.htmx import HtmxRequest
from runs.models import AgentStep, ModelAttempt, Run
from runs.serializers import call_json, format_timestamp, run_json, step_json
from runs.services.errors import CannotExportScenario
from runs.services.evaluation.export_scenario import export_scenario
from runs.services.runs.mask_secrets import SecretMask
from runs.ui.status_badge import get_status_label
from runs.views.run_actions.document import BATCH, build_run_document

STYLE_SHEETS = ("tokens", "base", "components", "forks")
EXPORT_FORMAT = "agentsite-run/1"
"""Name and version of the JSON file's shape."""
CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Lets the opened file load nothing but its own content."""


@require_GET
def run_export_html(request: HtmxRequest, pk: int) -> HttpResponse:
    """Download a self-contained HTML file."""
    run = get_exported_run(request, pk)
    context = {"document": build_run_document(run, names_agent=True), "is_file": True}
    body = render_to_string("runs/_document.html", context)
    icons = render_to_string("parts/_icons.html")
    values = {"run": run.pk, "status": get_status_label(run.status)}
    title = escape(_("Run %(run)s: %(status)s") % values)
    page = (
        f'<!doctype html>\n<html lang="{get_language() or "en"}">\n<head>\n'
        '<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" '
        f'content="{CONTENT_SECURITY_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="robots" content="noindex">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>\n{load_styles()}\n</style>\n</head>\n"
        f'<body>\n{icons}\n<main class="page gap">\n{body}\n</main>\n</body>\n</html>\n'
    )
    return build_download(
        page.encode("utf-8", "replace"), f"run-{pk}.html", "text/html"
    )


@cache
def load_styles() -> str:
    """Return the style sheets as one text, without comments."""
    found = (finders.find(f"runs/css/{name}.css") for name in STYLE_SHEETS)
    text = "\n".join(Path(str(path)).read_text() for path in found)
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).replace("</", "<\\/")


@require_GET
def run_export_json(request: HtmxRequest, pk: int) -> HttpResponse:
    """Download the run with all model calls, steps and failed attempts as JSON."""
    shape = build_run_export(get_exported_run(request, pk))
    text = to_json(shape, indent=2, inf_nan_mode="null")
    return build_download(text, f"run-{pk}.json", "application/json")


def build_run_export(run: Run) -> dict[str, Any]:
    """Return the run with all that belongs to it, its secrets masked."""
    mask = SecretMask(run)
    return {
        "format": EXPORT_FORMAT,
        "run": mask.json(run_json(run)),
        "fork": build_fork_json(run),
        "model_calls": list(iter_call_exports(run, mask)),
        "steps": list(iter_step_exports(run, mask)),
        "attempts": list(iter_attempt_exports(run, mask)),
    }


@require_GET
def run_export_scenario(request: HtmxRequest, pk: int) -> HttpResponse:
    """Download the run as a scenario file; without one, show why on its page."""
    run = get_exported_run(request, pk)
    try:
        scenario = export_scenario(run)
    except CannotExportScenario as refused:
        messages.error(request, str(refused))
        return redirect("run-detail", pk)
    text = to_json([scenario], indent=1, inf_nan_mode="null")
    return build_download(text, f"run-{pk}.scenario.json", "application/json")


def get_exported_run(request: HtmxRequest, pk: int) -> Run:
    runs = Run.objects.visible_to(request.user).select_related(
        "agent__owner", "owner", "version"
    )
    return get_object_or_404(runs, pk=pk)


def build_fork_json(run: Run) -> dict[str, Any] | None:
    """Return where the run was forked; None if it is not a fork."""
    if run.fork_index is None:
        return None
    return {
        "of": run.forked_from_id,
        "at": run.fork_row,
        "edits": run.fork_edits,
    }


def iter_call_exports(run: Run, mask: SecretMask) -> Iterator[dict[str, Any]]:
    calls = run.calls.select_related("spec").order_by("number")
    for call in calls.iterator(BATCH):
        yield {
            **mask.json(call_json(call)),
            "settings": mask.json(call.sent_settings),
            "reused": call.is_copied,
            "edited": call.is_edited,
        }


def iter_step_exports(run: Run, mask: SecretMask) -> Iterator[dict[str, Any]]:
    rows = AgentStep.objects.filter(run=run).order_by("index")
    for step in rows.defer("value").iterator(BATCH):
        shape = step_json(step)
        observation = shape["observation"]
        yield {
            **mask.json(shape),
            "observation": None
            if observation is None
            else mask.mask_text_or_json(observation),
            "started_at": format_timestamp(step.started_at),
            "reused": step.is_copied,
            "edited": step.is_edited,
        }


def iter_attempt_exports(run: Run, mask: SecretMask) -> Iterator[dict[str, Any]]:
    for one in ModelAttempt.objects.filter(run=run):
        yield {
            "model_call": one.number,
            "attempt": one.attempt,
            "code": one.code,
            "message": mask.text(one.message),
            "partial_text": mask.text(one.partial_text),
            "started_at": format_timestamp(one.started_at),
            "duration_ms": round(one.elapsed * 1000),
        }


def build_download(body: bytes, name: str, kind: str) -> HttpResponse:
    response = HttpResponse(body, content_type=f"{kind}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response
