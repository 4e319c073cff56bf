"""Filing runs that are over, so that lists of a million find, filter and sort them."""

import json
from collections import defaultdict
from collections.abc import Iterable

from django.db import transaction

from runs.models import AgentStep, Run, RunCard, RunTool
from runs.models.runs import OVER
from runs.services.tally_runs import tally_cards

AT_ONCE = 200
FIELDS = ["text", "status", "ended_at", "seconds", "rounds", "tokens", "cost"]
LONGEST = 8_000
"""Characters of the inputs, and as many of the output, that can be searched."""


def file_runs(at_once: int = AT_ONCE) -> int:
    """File at most `at_once` runs that ended since; return how many.

    Two workers never file the same rows at a time. A resumed run is filed again.
    """
    with transaction.atomic():
        rows = Run.objects.filter(filed=False, status__in=OVER).order_by("pk")
        runs = list(rows.select_for_update(skip_locked=True, of=("self",))[:at_once])
        if not runs:
            return 0
        cards = [card_of(run) for run in runs]
        earlier = RunCard.objects.filter(run__in=runs).select_related("run")
        tally_cards(cards, removed=list(earlier))
        RunCard.objects.bulk_create(
            cards,
            update_conflicts=True,
            unique_fields=["run"],
            update_fields=FIELDS,
        )
        RunTool.objects.bulk_create(_tools_of(runs), ignore_conflicts=True)
        Run.objects.filter(pk__in=[run.pk for run in runs]).update(filed=True)
    return len(runs)


def card_of(run: Run) -> RunCard:
    """Return what lists ask about a run that is over."""
    begun, ended = run.started_at, run.ended_at
    assert ended is not None
    return RunCard(
        run=run,
        text=text_of(run),
        status=run.status,
        ended_at=ended,
        seconds=(ended - begun).total_seconds() if begun else 0.0,
        rounds=run.rounds,
        tokens=run.input_tokens + run.output_tokens,
        cost=run.cost,
    )


def text_of(run: Run) -> str:
    """Return what can be searched, in lower case."""
    asked = "\n".join(str(value) for value in run.inputs.values())
    told = run.output if isinstance(run.output, str) else _json(run.output)
    parts = (asked[:LONGEST], told[:LONGEST], run.error_message[:LONGEST])
    return "\n".join(part for part in parts if part).lower()


def _json(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _tools_of(runs: Iterable[Run]) -> list[RunTool]:
    """Return a row for each run and tool; parse errors are no tools."""
    steps = AgentStep.objects.filter(run__in=runs).exclude(tool__startswith="_")
    found: dict[int, set[str]] = defaultdict(set)
    for run_id, name in steps.order_by().values_list("run_id", "tool").distinct():
        found[run_id].add(name)
    return [
        RunTool(run_id=pk, tool=name) for pk, names in found.items() for name in names
    ]
