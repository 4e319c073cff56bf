"""Index ended runs, so that lists of a million can be searched and sorted."""

import json
from collections import defaultdict
from collections.abc import Iterable

from django.db import transaction

from runs.models import AgentStep, Run, RunSearchRow, RunTool
from runs.models.runs import FINISHED_STATUSES
from runs.services.search.daily_stats import update_daily_stats

BATCH_SIZE = 200
UPDATED_FIELDS = ["text", "status", "ended_at", "seconds", "rounds", "tokens", "cost"]
MAX_TEXT_LENGTH = 8_000
"""Characters of the inputs, and of the output, that can be searched."""


def index_runs(at_once: int = BATCH_SIZE) -> int:
    """Index at most `at_once` ended runs; return how many.

    Two workers never index the same rows at once. A resumed run is indexed again.
    """
    with transaction.atomic():
        rows = Run.objects.filter(indexed=False, status__in=FINISHED_STATUSES).order_by(
            "pk"
        )
        runs = list(rows.select_for_update(skip_locked=True, of=("self",))[:at_once])
        if not runs:
            return 0
        cards = [build_search_row(run) for run in runs]
        earlier = RunSearchRow.objects.filter(run__in=runs).select_related("run")
        update_daily_stats(cards, removed=list(earlier))
        RunSearchRow.objects.bulk_create(
            cards,
            update_conflicts=True,
            unique_fields=["run"],
            update_fields=UPDATED_FIELDS,
        )
        RunTool.objects.bulk_create(_build_tool_rows(runs), ignore_conflicts=True)
        Run.objects.filter(pk__in=[run.pk for run in runs]).update(indexed=True)
    return len(runs)


def build_search_row(run: Run) -> RunSearchRow:
    """Return the columns that lists use of an ended run."""
    begun, ended = run.started_at, run.ended_at
    assert ended is not None
    return RunSearchRow(
        run=run,
        text=build_search_text(run),
        status=run.status,
        ended_at=ended,
        seconds=(ended - begun).total_seconds() if begun else 0.0,
        rounds=run.rounds,
        tokens=run.input_tokens + run.output_tokens,
        cost=run.cost,
    )


def build_search_text(run: Run) -> str:
    """Return the searchable text in lower case."""
    asked = "\n".join(str(value) for value in run.inputs.values())
    told = run.output if isinstance(run.output, str) else _dump_output(run.output)
    parts = (
        asked[:MAX_TEXT_LENGTH],
        told[:MAX_TEXT_LENGTH],
        run.error_message[:MAX_TEXT_LENGTH],
    )
    return "\n".join(part for part in parts if part).lower()


def _dump_output(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _build_tool_rows(runs: Iterable[Run]) -> list[RunTool]:
    """Return a row for each run and tool; parse errors are not tools."""
    steps = AgentStep.objects.filter(run__in=runs).exclude(tool__startswith="_")
    found: dict[int, set[str]] = defaultdict(set)
    for run_id, name in steps.order_by().values_list("run_id", "tool").distinct():
        found[run_id].add(name)
    return [
        RunTool(run_id=pk, tool=name) for pk, names in found.items() for name in names
    ]
