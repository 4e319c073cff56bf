"""The API's stream: named events with the JSON that GET answers."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings

from runs.live.batches import ChangeBatch, DraftText, Fragment, Head, RendererState
from runs.live.changes import Changes, Sources, read_changes
from runs.live.sse import format_event
from runs.models import AgentStep, ModelCall, Run
from runs.serializers import (
    RUN_RELATIONS,
    annotate_child_runs,
    call_json,
    run_json,
    step_json,
)


class ApiRenderer:
    """Events `run`, `model_call`, `step`, `draft` and `end`."""

    def __init__(self, language: str = settings.LANGUAGE_CODE) -> None:
        self.language = language

    def read_batches(
        self, wanted: dict[int, int], memories: dict[int, RendererState]
    ) -> list[ChangeBatch]:
        """Return the events of each run's changes, in the order of their commits."""
        sources = Sources(
            runs=Run.objects.select_related(*RUN_RELATIONS),
            calls=ModelCall.objects.all(),
            steps=annotate_child_runs(AgentStep.objects.defer("value")),
        )
        found = read_changes(wanted, sources)
        return [build_event_batch(changes) for changes in found]

    def find_stale_runs(
        self, run_ids: list[int], memories: dict[int, RendererState]
    ) -> list[int]:
        """Return nothing: programs get what is committed."""
        return []

    def render_heads(
        self, run_ids: list[int], memories: dict[int, RendererState]
    ) -> dict[int, Head]:
        """Return nothing, like `stale`."""
        return {}

    def render_message(self, batch: ChangeBatch, cursor: int) -> bytes:
        """Return the events a client at `cursor` lacks."""
        return b"".join(batch.messages_after(cursor))

    def render_backlog(self, draft: DraftText) -> Iterator[None]:
        return iter(())

    def render_draft(self, draft: DraftText, sent: int | None) -> bytes:
        """Return a piece of draft; it has no id, so that nobody resumes from it."""
        skipped = sent or 0
        shape = {
            "number": draft.number,
            "attempt": draft.attempt,
            "at": draft.start + skipped,
            "text": draft.text[skipped:],
        }
        return format_event("draft", shape)


def build_event_batch(changes: Changes) -> ChangeBatch:
    """Return the events of one run; the run itself comes last, and `end` after it.

    What was changed after the run was read comes with the next batch.
    """
    run = changes.run
    rows: list[tuple[int, int, str, Any]] = [
        *(
            (call.changed_seq, 0, "model_call", call_json(call))
            for call in changes.calls
        ),
        *(
            (step.changed_seq, 1 + step.index, "step", step_json(step))
            for step in changes.steps
        ),
    ]
    rows = sorted(
        (row for row in rows if row[0] <= changes.seq), key=lambda row: row[:2]
    )
    events = [
        uniform_fragment(
            seq,
            format_event(name, shape, seq=resume_seq(rows, place, upto=changes.seq)),
        )
        for place, (seq, _, name, shape) in enumerate(rows)
    ]
    is_over = changes.is_whole and run.is_over
    if changes.is_whole:
        message = format_event("run", run_json(run), seq=changes.seq)
        if is_over:
            message += format_event(
                "end", {"id": run.pk, "status": run.status}, seq=changes.seq
            )
            # A client that has seen everything still gets the end event.
            events.append(Fragment(0, END_SEQ, message, message))
        else:
            events.append(uniform_fragment(changes.seq, message))
    return ChangeBatch(
        run_id=run.pk,
        since=changes.since,
        seq=changes.seq,
        fragments=tuple(events),
        is_over=is_over,
        has_more=not changes.is_whole,
        next_call=run.next_number,
        fence=run.fence,
        is_running=run.status == Run.Status.RUNNING,
    )


END_SEQ = 2**63
"""Later than any cursor."""


def uniform_fragment(seq: int, content: bytes) -> Fragment:
    """Return a fragment that reads the same to everyone."""
    return Fragment(0, seq, content, content)


def resume_seq(rows: list[tuple[int, int, str, Any]], place: int, *, upto: int) -> int:
    """Return the id of an event, from which a client that disconnects after it resumes.

    Inside a commit, and before the run that ends a batch, that is the commit before.
    """
    seq = rows[place][0]
    is_last = place + 1 < len(rows) and rows[place + 1][0] > seq
    return min(seq if is_last else seq - 1, upto - 1)
