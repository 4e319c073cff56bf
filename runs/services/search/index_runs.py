"""Index ended runs, so that lists of a million can be searched and sorted."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable

from django.db import transaction
from django.db.models import Min, Q
from django.db.models.functions import Substr

from runs.models import AgentStep, Conversation, Run, RunSearchRow, RunTool
from runs.models.runs import FINISHED_STATUSES
from runs.services.search.daily_stats import update_daily_stats
from runs.services.search.human_waits import get_work_seconds, load_human_waits
from runs.services.search.scoring_sample import select_runs_to_score
from runs.store.mail.notifications import notify_of_failed_runs
from runs.store.metric_counters import (
    RUN_SECONDS,
    RUNS_FINISHED,
    CounterBatch,
    write_counters,
)

BATCH_SIZE = 200
UPDATED_FIELDS = ["text", "status", "ended_at", "seconds", "rounds", "tokens", "cost"]
MAX_TEXT_LENGTH = 8_000
"""Characters of the inputs, of the output, and of the steps that can be searched."""
MAX_ERROR_LENGTH = 500
"""Characters of the error of one step that can be searched."""

ANSWER_HEADING = re.compile(r"\s*#{1,3}[ \t]+([^\n]+)")
MARKUP = re.compile(r"[*_`#]+|\[([^\]]*)\]\([^)]*\)")
MAX_HEADING_LENGTH = 80
"""Characters; a longer heading is not a title."""


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
        tools = _load_called_tools(runs)
        errors = _load_step_errors(runs)
        waits = load_human_waits([run.pk for run in runs])
        cards = [
            build_search_row(
                run,
                step_words=(*tools[run.pk], *errors[run.pk]),
                waited=waits.get(run.pk, 0.0),
            )
            for run in runs
        ]
        earlier = RunSearchRow.objects.filter(run__in=runs).select_related("run")
        update_daily_stats(cards, removed=list(earlier))
        RunSearchRow.objects.bulk_create(
            cards,
            update_conflicts=True,
            unique_fields=["run"],
            update_fields=UPDATED_FIELDS,
        )
        RunTool.objects.bulk_create(
            [
                RunTool(run_id=pk, tool=name, has_failed=has_failed)
                for pk, called in tools.items()
                for name, has_failed in called.items()
            ],
            update_conflicts=True,
            unique_fields=["run", "tool"],
            update_fields=["has_failed"],
        )
        Run.objects.filter(pk__in=[run.pk for run in runs]).update(indexed=True)
        own = [run for run in runs if not run.is_imported]
        count_ended_runs(card for card in cards if not card.run.is_imported)
        select_runs_to_score(own)
        update_automatic_titles(own)
        notify_of_failed_runs(own)
    return len(runs)


def count_ended_runs(cards: Iterable[RunSearchRow]) -> None:
    """Count runs that have ended, in the transaction that marks them as indexed."""
    batch = CounterBatch()
    for card in cards:
        reason = card.run.error_code or card.run.stop_reason
        RUNS_FINISHED.add_to(batch, status=card.status, reason=reason)
        RUN_SECONDS.observe_in(batch, card.seconds, status=card.status)
    write_counters(batch.drain())


def build_search_row(
    run: Run, *, step_words: Iterable[str] = (), waited: float = 0.0
) -> RunSearchRow:
    """Return the columns that lists use of an ended run.

    `step_words` are the tools that it called and the errors of its steps, `waited`
    the seconds in which it waited for people.
    """
    ended = run.ended_at
    assert ended is not None
    return RunSearchRow(
        run=run,
        text=build_search_text(run, step_words),
        status=run.status,
        ended_at=ended,
        seconds=get_work_seconds(run, waited) or 0.0,
        rounds=run.rounds,
        tokens=run.input_tokens + run.output_tokens,
        cost=run.cost,
    )


def build_search_text(run: Run, step_words: Iterable[str] = ()) -> str:
    """Return the searchable text in lower case."""
    asked = "\n".join(str(value) for value in run.inputs.values())
    message = run.output if isinstance(run.output, str) else _dump_output(run.output)
    parts = (
        asked[:MAX_TEXT_LENGTH],
        message[:MAX_TEXT_LENGTH],
        run.error_code,
        run.error_message[:MAX_TEXT_LENGTH],
        "\n".join(step_words)[:MAX_TEXT_LENGTH],
    )
    return "\n".join(part for part in parts if part).lower()


def _load_called_tools(runs: Iterable[Run]) -> dict[int, dict[str, bool]]:
    """Return the tools that each run called, and whether a call of each failed.

    Parse errors are not tools.
    """
    steps = AgentStep.objects.filter(run__in=runs).exclude(tool__startswith="_")
    columns = steps.order_by().values_list("run_id", "tool", "status").distinct()
    found: dict[int, dict[str, bool]] = defaultdict(dict)
    for run_id, name, status in columns:
        called = found[run_id]
        has_failed = status == AgentStep.Status.FAILED
        called[name] = called.get(name, False) or has_failed
    return found


def _load_step_errors(runs: Iterable[Run]) -> dict[int, list[str]]:
    failed = AgentStep.objects.filter(run__in=runs, status=AgentStep.Status.FAILED)
    text = Substr("observation", 1, MAX_ERROR_LENGTH)
    found: dict[int, list[str]] = defaultdict(list)
    for run_id, error in failed.order_by("index").values_list("run_id", text):
        found[run_id].append(error)
    return found


def _dump_output(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def update_automatic_titles(runs: Iterable[Run]) -> None:
    """Title the conversations that ended runs began by the headings of the answers."""
    found = {
        run.conversation_id: (run, heading)
        for run in runs
        if run.conversation_id is not None and (heading := find_answer_heading(run))
    }
    if not found:
        return
    rows = Run.objects.filter(conversation__in=found).values("conversation")
    firsts = rows.annotate(first=Min("pk")).values_list("conversation", "first")
    for pk, first in firsts.order_by():
        run, heading = found[pk]
        if run.pk == first:
            family = Q(pk=pk, root=None) | Q(root=pk)
            same = Conversation.objects.filter(family, title=run.title, is_test=False)
            same.update(title=heading)


def find_answer_heading(run: Run) -> str:
    """Return the heading with which the answer begins, without marks; empty if none."""
    if run.status != Run.Status.SUCCEEDED or not isinstance(run.output, str):
        return ""
    match = ANSWER_HEADING.match(run.output[:1_000])
    heading = MARKUP.sub(r"\1", match[1]).strip() if match else ""
    return heading if len(heading) <= MAX_HEADING_LENGTH else ""
