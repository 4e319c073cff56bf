"""Export of the list of runs as CSV or JSON."""

import csv
import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest
from runs.models import Run, RunTag
from runs.services.search.human_waits import load_human_waits
from runs.views.run_list.filters import RunFilters, read_filters
from runs.views.run_list.pagination import (
    PageCursor,
    build_run_queries,
    fetch_runs_after,
    merge_run_lists,
)
from tools.text.csv_cell import format_csv_cell

MAX_EXPORTED_RUNS = 100_000
BATCH = 500
"""Runs per query."""
COLUMNS = (
    *("id", "status", "stop_reason", "error_code", "error_message", "agent"),
    *("version", "model", "owner", "source", "is_test", "tool_mode", "tags"),
    *("title", "inputs", "output", "created_at", "started_at", "ended_at", "seconds"),
    *("rounds", "input_tokens", "output_tokens", "cost", "rating"),
)
RELATED_COLUMNS = {
    "agent": "agent__slug",
    "version": "version__number",
    "model": "spec__body__model__model",
    "owner": "owner__username",
}
"""Columns of related tables."""
TIME_COLUMNS = ("created_at", "started_at", "ended_at")
OWN_COLUMNS = [
    name for name in COLUMNS if name not in {*RELATED_COLUMNS, "tags", "seconds"}
]


@require_GET
def run_export(request: HtmxRequest) -> HttpResponse | StreamingHttpResponse:
    """Stream the runs that match the filters, at most 100,000."""
    filters, problems = read_filters(request.GET)
    if problems:  # the list shows the errors; a file would have the wrong runs
        return redirect(f"{reverse('run-list')}?{request.GET.urlencode()}")
    kind = "csv" if request.GET.get("as") == "csv" else "json"
    lines = iter_csv_lines if kind == "csv" else iter_json_lines
    answer = StreamingHttpResponse(
        lines(iter_exported_runs(filters, request.user)),
        content_type="text/csv; charset=utf-8"
        if kind == "csv"
        else "application/json; charset=utf-8",
    )
    answer["Content-Disposition"] = f'attachment; filename="runs.{kind}"'
    return answer


def iter_exported_runs(filters: RunFilters, user: User) -> Iterator[dict[str, Any]]:
    """Yield the runs of the list from its top, a batch at a time."""
    visible = Run.objects.visible_to(user)
    queries = build_run_queries(visible, filters, user=user)
    place: PageCursor | None = None
    for _ in range(0, MAX_EXPORTED_RUNS, BATCH):
        parts = [
            fetch_runs_after(
                one, place, filters.sort, most=BATCH, gather=filters.is_far_back
            )
            for one in queries
        ]
        page = merge_run_lists(parts, sign=-1)[:BATCH]
        yield from iter_run_values([row.pk for row in page])
        if len(page) < BATCH:
            return
        place = page[-1]


def iter_run_values(pks: list[int]) -> Iterator[dict[str, Any]]:
    """Yield the values of each run, in the order of `COLUMNS`.

    Rows are values, not model instances: tens of thousands of those, in reference
    cycles, would wait for the garbage collector.
    """
    tags = defaultdict[int, list[str]](list)
    for pk, name in RunTag.objects.filter(run__in=pks).values_list("run", "name"):
        tags[pk].append(name)
    rows = Run.objects.filter(pk__in=pks).values(
        *OWN_COLUMNS, *RELATED_COLUMNS.values()
    )
    found = {row["id"]: row for row in rows}
    waits = load_human_waits(pks)
    for row in (found[pk] for pk in pks if pk in found):
        begun, ended = row["started_at"], row["ended_at"]
        row |= {name: row[path] for name, path in RELATED_COLUMNS.items()}
        row["model"] = row["model"] or ""
        row["tags"] = tags[row["id"]]
        waited = waits.get(row["id"], 0.0)
        whole = (ended - begun).total_seconds() if begun and ended else None
        row["seconds"] = None if whole is None else max(whole - waited, 0.0)
        row["cost"] = str(row["cost"])
        for name in TIME_COLUMNS:
            row[name] = row[name].isoformat() if row[name] else None
        yield {name: row[name] for name in COLUMNS}


def iter_json_lines(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Yield a JSON list with one row per line."""
    before = "[\n"
    for row in rows:
        yield before + json.dumps(row, ensure_ascii=False)
        before = ",\n"
    yield "\n]\n" if before != "[\n" else "[]\n"


class EchoWriter:
    """A file that returns what is written to it."""

    def write(self, line: str) -> str:
        return line


def iter_csv_lines(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Yield a header and one line per run; no cell is a formula."""
    writer = csv.writer(EchoWriter())
    yield "\ufeff" + writer.writerow(COLUMNS)
    for row in rows:
        yield writer.writerow([format_csv_cell(row[name]) for name in COLUMNS])
