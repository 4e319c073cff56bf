"""The runs of a list as a file: CSV for a spreadsheet, JSON for a program."""

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
ELSEWHERE = {
    "agent": "agent__slug",
    "version": "version__number",
    "model": "spec__body__model__model",
    "owner": "owner__username",
}
"""Columns that other tables hold."""
TIMES = ("created_at", "started_at", "ended_at")
KEPT = [name for name in COLUMNS if name not in {*ELSEWHERE, "tags", "seconds"}]
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings that a spreadsheet would calculate."""


@require_GET
def run_export(request: HtmxRequest) -> HttpResponse | StreamingHttpResponse:
    """Send the runs that pass the filters, at most a hundred thousand."""
    filters, problems = read_filters(request.GET)
    if problems:  # the list says which; a file would hold what nobody asked for
        return redirect(f"{reverse('run-list')}?{request.GET.urlencode()}")
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
    visible = Run.objects.visible_to(user).only("pk")
    queries = found_runs(visible, filters, user=user)
    place: Place | None = None
    for _ in range(0, MOST, BATCH):
        parts = [downwards(one, place, filters.sort, most=BATCH) for one in queries]
        page = merged(parts, sign=-1)[:BATCH]
        yield from told([run.pk for run in page])
        if len(page) < BATCH:
            return
        place = place_of(page[-1], filters.sort)


def told(pks: list[int]) -> Iterator[dict[str, Any]]:
    """Yield what is told of each run, in the order of `COLUMNS`.

    Rows are values and no objects: those refer to each other in circles, and wait for
    the collector by the ten thousand.
    """
    tags = defaultdict[int, list[str]](list)
    for pk, name in RunTag.objects.filter(run__in=pks).values_list("run", "name"):
        tags[pk].append(name)
    rows = Run.objects.filter(pk__in=pks).values(*KEPT, *ELSEWHERE.values())
    found = {row["id"]: row for row in rows}
    for row in (found[pk] for pk in pks if pk in found):
        begun, ended = row["started_at"], row["ended_at"]
        row |= {name: row[path] for name, path in ELSEWHERE.items()}
        row["model"] = row["model"] or ""
        row["tags"] = tags[row["id"]]
        row["seconds"] = (ended - begun).total_seconds() if begun and ended else None
        row["cost"] = str(row["cost"])
        for name in TIMES:
            row[name] = row[name].isoformat() if row[name] else None
        yield {name: row[name] for name in COLUMNS}


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
