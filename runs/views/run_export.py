"""The runs of a list as a file: CSV for a spreadsheet, JSON for a program."""

import csv
import json
from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpResponse, StreamingHttpResponse
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest
from runs.models import Run
from runs.views.run_filters import Filters, read_filters
from runs.views.run_pages import Place, downwards, found_runs, merged, place_of

MOST = 100_000
BATCH = 500
"""Runs read in one go."""
COLUMNS = (
    *("id", "status", "stop_reason", "error_code", "error_message", "agent"),
    *("version", "model", "owner", "source", "is_test", "tags", "title", "inputs"),
    *("output", "created_at", "started_at", "ended_at", "seconds", "rounds"),
    *("input_tokens", "output_tokens", "cost"),
)
RELATED = ("agent", "version", "owner", "spec")
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings that a spreadsheet would calculate."""


@require_GET
def run_export(request: HtmxRequest) -> HttpResponse | StreamingHttpResponse:
    """Send the runs that pass the filters, at most a hundred thousand."""
    filters, _ = read_filters(request.GET)
    kind = "csv" if request.GET.get("as") == "csv" else "json"
    lines = csv_lines if kind == "csv" else json_lines
    answer = StreamingHttpResponse(
        lines(exported(filters, request.user)),
        content_type="text/csv; charset=utf-8"
        if kind == "csv"
        else "application/json; charset=utf-8",
    )
    answer["Content-Disposition"] = f'attachment; filename="runs.{kind}"'
    return answer


def exported(filters: Filters, user: User) -> Iterator[dict[str, Any]]:
    """Yield the runs of the list from its top, a batch at a time."""
    told = Run.objects.visible_to(user).select_related(*RELATED)
    visible = told.prefetch_related("tags")
    queries = found_runs(visible, filters, user=user)
    place: Place | None = None
    for _ in range(0, MOST, BATCH):
        parts = [downwards(one, place, filters.sort, most=BATCH) for one in queries]
        page = merged(parts, sign=-1)[:BATCH]
        for run in page:
            yield shape_of(run)
        if len(page) < BATCH:
            return
        place = place_of(page[-1], filters.sort)


def shape_of(run: Run) -> dict[str, Any]:
    """Return what is told of one run, in the order of `COLUMNS`."""
    begun, ended = run.started_at, run.ended_at
    seconds = (ended - begun).total_seconds() if begun and ended else None
    told = {
        "id": run.pk,
        "agent": run.agent.slug,
        "version": run.version.number if run.version else None,
        "model": run.spec.body.get("model", {}).get("model", ""),
        "owner": run.owner.get_username(),
        "tags": [tag.name for tag in run.tags.all()],
        "seconds": seconds,
        "cost": str(run.cost),
    }
    for name in ("created_at", "started_at", "ended_at"):
        at = getattr(run, name)
        told[name] = at.isoformat() if at else None
    return {name: told.get(name, getattr(run, name, None)) for name in COLUMNS}


def json_lines(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Yield one JSON list, a row a line."""
    before = "[\n"
    for row in rows:
        yield before + json.dumps(row, ensure_ascii=False)
        before = ",\n"
    yield "\n]\n" if before != "[\n" else "[]\n"


class Echo:
    """A file that returns what is written to it."""

    def write(self, line: str) -> str:
        """Return the line."""
        return line


def csv_lines(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Yield a head and a line a run; no cell is a formula."""
    writer = csv.writer(Echo())
    yield "\ufeff" + writer.writerow(COLUMNS)
    for row in rows:
        yield writer.writerow([cell(row[name]) for name in COLUMNS])


def cell(value: Any) -> Any:
    """Return a value as a spreadsheet should take it."""
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return "" if value is None else value
