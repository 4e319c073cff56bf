"""The page's stream: parts of the run page, for anyone who may see the run.

A fragment holds nothing of one viewer. What needs a person's rights or forms is put
into the page as a part that loads itself.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape, format_html

from runs.engine.types import ExecutorOptions
from runs.live.batches import FRAME, Batch, DraftText, Fragment, Head, Memory
from runs.live.changes import Changes, Sources, changes_of
from runs.live.sse import element
from runs.models import Decision, ModelAttempt, Run
from runs.views.run_choice import SHOWS
from runs.views.run_context import (
    answer_context,
    follow_context,
    loaded,
    now_row,
)
from runs.views.run_rows import (
    NO_SIGN,
    Row,
    call_row,
    calls_of,
    failed_row,
    step_row,
    steps_of,
)
from runs.views.run_state import (
    RunState,
    context_of,
    doing_of,
    has_worker,
    is_lost,
    limits_of,
    places_of,
)
from runs.views.run_times import timeline_of
from runs.views.run_window import counts_of
from runs.views.timeline import Timeline

FOLLOWERS = "#run-detail:has(#run-follow)"
"""The right pane of those who have chosen no step."""
STALE_AT_ONCE = 100

HEAD = ("progress", "facts", "times", "steps_head", "whole", "now", "unbegun")
ALIVE = "#run-progress:not(:has(.need))"
ACTIVITY = re.compile(rb'(id="run-activity">)[^<]*')
NOW = re.compile(rb'(id="run-now".*?<b class="clip">)[^<]*', re.DOTALL)
"""What a head says of a model call, of whose text only the hub knows."""
NEWEST = "#run-steps[data-end]"
"""The rows of those who see the newest; others load theirs by themselves."""


@dataclass
class Remembered:
    """What the page's stream keeps of a run between its batches."""

    timeline: Timeline
    limits: ExecutorOptions
    relations: dict[str, Any] = field(default_factory=dict)
    """Rows the run refers to, read once."""
    turn_seq: int = 0
    """When the run's status, or what it asks a person, last changed."""
    sign: tuple[Any, ...] = ()
    life: tuple[Any, ...] = ()
    """Lease, place in the queue and retry, as they were last told."""
    retry_at: datetime | None = None
    was_lost: bool = False
    """Whether calls under way may be shown as those of a lost run."""


@dataclass(frozen=True)
class Around:
    """What several runs' headers need, asked for once."""

    doing: dict[int, list[str]] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)
    has_worker: bool = True

    @classmethod
    def of(cls, runs: Sequence[Run]) -> "Around":
        """Read it for these runs."""
        by_status: dict[str, list[int]] = {}
        for run in runs:
            by_status.setdefault(run.status, []).append(run.pk)
        running = by_status.get(Run.Status.RUNNING, [])
        queued = by_status.get(Run.Status.QUEUED, [])
        has_lost = any(is_lost(run.status, run.lease_until) for run in runs)
        return cls(
            doing=doing_of(running) if running else {},
            places=places_of(queued) if queued else {},
            has_worker=has_worker() if queued or has_lost else True,
        )

    def state(self, run: Run, kept: Remembered) -> RunState:
        """Return the state of one of the runs."""
        return RunState(
            run=run,
            timeline=kept.timeline,
            limits=kept.limits,
            doing=self.doing.get(run.pk, []),
            place=self.places.get(run.pk),
            has_worker=self.has_worker,
        )


def partial(target: str, swap: str, text: str) -> bytes:
    """Return plain text as an update of one element."""
    return element(target, swap, escape(text))


class PageForm:
    """Fragments of `templates/runs/` as unnamed messages."""

    def read(self, wanted: dict[int, int], memories: dict[int, Memory]) -> list[Batch]:
        """Return the fragments of each run's changes."""
        sources = Sources(
            runs=Run.objects.defer(*UNSHOWN),
            calls=calls_of(wanted),
            steps=steps_of(wanted),
        )
        found = changes_of(wanted, sources)
        failed = attempts_of(found)
        questions = open_questions(
            [changes.run.pk for changes in found if changes.run.needs_a_person]
        )
        return [
            self._batch(
                changes,
                remembered(changes, memories),
                failed=failed,
                questions=questions.get(changes.run.pk, ()),
            )
            for changes in found
        ]

    def stale(self, run_ids: list[int], memories: dict[int, Memory]) -> list[int]:
        """Return runs with a new sign of life or another place in the queue."""
        rows = Run.objects.filter(pk__in=run_ids, status__in=["queued", "running"])
        lives = {
            pk: (lease, status)
            for pk, lease, status in rows.values_list("pk", "lease_until", "status")
        }
        queued = [pk for pk, life in lives.items() if life[1] == Run.Status.QUEUED]
        places = places_of(queued) if queued else {}
        lost = {pk for pk, (lease, status) in lives.items() if is_lost(status, lease)}
        alive = has_worker() if queued or lost else True
        changed = []
        for pk, (lease, status) in lives.items():
            kept = memories[pk].kept.get("page")
            if not isinstance(kept, Remembered):
                continue
            is_due = kept.retry_at is not None and kept.retry_at < timezone.now()
            life = (lease, status, places.get(pk), alive, is_due, pk in lost)
            if kept.life != life:
                kept.life = life
                changed.append(pk)
        return changed[:STALE_AT_ONCE]

    def heads(self, run_ids: list[int], memories: dict[int, Memory]) -> dict[int, Head]:
        """Return the header, and the right pane of those who follow."""
        runs = list(Run.objects.filter(pk__in=run_ids).defer(*UNSHOWN))
        around = Around.of(runs)
        told: dict[int, Head] = {}
        for run in runs:
            kept = memories[run.pk].kept.get("page")
            if isinstance(kept, Remembered) and not run.is_over:
                relate(run, kept)
                state = around.state(run, kept)
                kept.retry_at = state.retry_at
                told[run.pk] = {"header": header(state), FRAME: followed(state)}
                kept.was_lost |= state.is_lost
                if kept.was_lost:
                    told[run.pk]["rows"] = open_rows(state)
        return told

    def writing(self, head: bytes) -> bytes:
        """Say in the header, and in the row, that the model writes."""
        if NO_SIGN[0].encode() in head:
            return head
        head = ACTIVITY.sub(rb"\1the model writes", head)
        return NOW.sub(rb"\1The model writes", head)

    def message(self, batch: Batch, cursor: int) -> bytes:
        """Return one message; its id is where a reconnecting page goes on."""
        return b"".join([b"id: %d\n" % batch.seq, *batch.unseen(cursor), b"\n"])

    def draft(self, draft: DraftText, sent: int | None) -> bytes:
        """Return new text for the draft; no id, for nobody may resume from it."""
        if sent is None:
            missing = "… " if draft.start else ""
            whole = partial("#draft-text", "innerHTML", missing + draft.text)
            row = partial("#run-now:has(.pulse) b", "innerHTML", "The model writes")
            head = partial(f"{ALIVE} #run-activity", "innerHTML", "the model writes")
            return whole + row + head + b"\n"
        return partial("#draft-text", "beforeend", draft.text[sent:]) + b"\n"

    def _batch(
        self,
        changes: Changes,
        kept: Remembered,
        *,
        failed: "Attempts",
        questions: tuple[int, ...],
    ) -> Batch:
        run, seq = changes.run, changes.seq
        rows = rows_of(changes, kept.timeline, failed)
        fragments = [row_fragment(row) for row in rows]
        if changes.is_whole:
            fragments += self._turn(changes, kept, questions)
        is_over = changes.is_whole and run.is_over
        if is_over:
            gone = element("#run-live", "outerHTML", ENDED)
            fragments.append(Fragment(0, END, gone, gone))
        return Batch(
            run_id=run.pk,
            since=changes.since,
            seq=seq,
            fragments=tuple(fragments),
            is_over=is_over,
            has_more=not changes.is_whole,
            next_call=run.next_number,
            failed_attempt=max(
                (
                    attempt.attempt
                    for attempt in changes.attempts
                    if attempt.number == run.next_number
                ),
                default=0,
            ),
            fence=run.fence,
            is_running=run.status == Run.Status.RUNNING,
        )

    def _turn(
        self, changes: Changes, kept: Remembered, questions: tuple[int, ...]
    ) -> list[Fragment]:
        """Return all that shows the run as a whole, where its status has changed."""
        run, seq = changes.run, changes.seq
        sign = (run.status, run.cancel_requested_at is None, questions)
        if sign != kept.sign:
            kept.sign, kept.turn_seq = sign, seq
        if kept.turn_seq <= changes.since and not run.is_over:
            return []
        relate(run, kept)
        state = Around.of([run]).state(run, kept)
        whole = header(state) + followed(state) + persons_parts(run)
        return [Fragment(0, kept.turn_seq, whole, whole)]


Attempts = dict[tuple[int, int], list[ModelAttempt]]
"""Failed ones, by run and the call's number."""

END = 2**63
"""Later than any cursor."""

ENDED = (
    '<div id="run-live" hidden></div>'
    '<div id="part-live" hidden hx-sse:connect="/live/me/" '
    'hx-trigger="load, every 2s"></div>'
)
"""In the place of the stream: the one that every other page has."""

UNSHOWN = ("inputs", "turn_ids", "output_log")
RELATIONS = (
    "agent",
    "version",
    "owner",
    "spec",
    "worker",
    "cancelled_by",
    "parent_step",
    "schedule",
)


def relate(run: Run, kept: Remembered) -> None:
    """Give `run` the rows it refers to, from memory where they are the same."""
    for name in RELATIONS:
        pk = getattr(run, f"{name}_id")
        known = kept.relations.get(name)
        if pk is not None and known is not None and known.pk == pk:
            setattr(run, name, known)
        else:
            kept.relations[name] = getattr(run, name)


def remembered(changes: Changes, memories: dict[int, Memory]) -> Remembered:
    """Return what is known of a run, made at the first reading."""
    run = changes.run
    kept = memories[run.pk].kept.get("page")
    if not isinstance(kept, Remembered):
        run = loaded(Run.objects.defer(*UNSHOWN)).get(pk=run.pk)
        kept = Remembered(timeline_of(run), limits_of(run))
        memories[run.pk].kept["page"] = kept
        return kept
    if kept.timeline.began is None:
        kept.timeline.began = run.started_at
    work = [
        *((call.started_at, call.elapsed, "model") for call in changes.calls),
        *(
            (step.started_at, step.duration, "run" if step.usage else "tool")
            for step in changes.steps
            if step.started_at
        ),
        *((one.started_at, one.elapsed, "model") for one in changes.attempts),
    ]
    for start, seconds, kind in sorted(work, key=lambda piece: piece[0]):
        kept.timeline.add(start, seconds, kind)
    if run.status == Run.Status.RUNNING:
        kept.timeline.go_on(run.queued_at)
    return kept


def attempts_of(found: list[Changes]) -> Attempts:
    """Return what failed before the calls in `found`, perhaps told long ago."""
    calls = [call for changes in found for call in changes.calls]
    if not calls:
        return {}
    rows = ModelAttempt.objects.filter(
        run__in={call.run_id for call in calls},
        number__in={call.number for call in calls},
    )
    failed: Attempts = {}
    for attempt in rows:
        failed.setdefault((attempt.run_id, attempt.number), []).append(attempt)
    return failed


def rows_of(changes: Changes, timeline: Timeline, failed: Attempts) -> list[Row]:
    """Return the changed rows in the order of their numbers."""
    rows = [
        *(
            call_row(call, timeline, failed.get((call.run_id, call.number), []))
            for call in changes.calls
        ),
        *(step_row(step, timeline) for step in changes.steps),
    ]
    if changes.is_whole and (last := failed_row(changes.run, timeline)):
        rows.append(last)
    return sorted(rows, key=lambda row: row.number)


def row_fragment(row: Row) -> Fragment:
    """Return a row: appended for who lacks it, else put in the place of the old one."""
    html, target = row_html(row), f"#run-step-{row.number}"
    # Deleting first makes it harmless that a page asks again for what it has.
    new = element(target, "delete", "") + element(NEWEST, "beforeend", html)
    return Fragment(
        row.created_seq, row.changed_seq, new, element(target, "outerHTML", html)
    )


def row_html(row: Row) -> str:
    """Return a line of the list of steps."""
    return render_to_string("runs/_step.html", {"row": row})


def open_rows(state: RunState) -> bytes:
    """Return the calls under way anew, for those who see them as under way still."""
    run, rows = state.run, []
    last = steps_of([run.pk]).filter(model_call__number=run.next_number - 1)
    for step in last.filter(status="started"):
        row = step_row(step, state.timeline, is_lost=state.is_lost)
        target = f"#run-step-{row.number}:has(.w-live, .w-cut)"
        rows.append(element(target, "outerHTML", row_html(row)))
    return b"".join(rows)


def header(state: RunState) -> bytes:
    """Return the parts that say where the run is."""
    counts = counts_of(state.run)
    context = {
        **context_of(state),
        "now_row": now_row(state),
        "total": counts.of(""),
    }
    parts = [
        element(
            f"#run-{name.replace('_', '-')}",
            "outerHTML",
            render_to_string(f"runs/_{name}.html", context),
        )
        for name in HEAD
    ]
    counted = [
        element(f"#run-count-{name or 'all'}", "innerHTML", f"{counts.of(name):,}")
        for name in SHOWS
    ]
    total = element("#run-total", "innerHTML", f"{counts.of(''):,}")
    return b"".join([*parts, *counted, total])


def followed(state: RunState) -> bytes:
    """Return the right pane for those who have chosen no step."""
    context = answer_context(state) if state.run.is_over else follow_context(state)
    html = render_to_string("runs/_detail.html", context)
    return element(FOLLOWERS, "outerHTML", html)


def persons_parts(run: Run) -> bytes:
    """Return parts that load themselves, since they depend on who looks.

    What stands there stays until they have come, so that nothing jumps twice.
    """
    pieces = []
    for name in ("actions", "banner"):
        loader = format_html(
            '<i hidden hx-get="{1}" hx-trigger="load" hx-target="#run-{0}" '
            'hx-swap="outerHTML"></i>',
            name,
            reverse(f"run-{name}", args=[run.pk]),
        )
        pieces.append(element(f"#run-{name}", "beforeend", loader))
    return b"".join(pieces)


def open_questions(run_ids: list[int]) -> dict[int, tuple[int, ...]]:
    """Return the keys of each run's open questions."""
    found: dict[int, tuple[int, ...]] = {}
    rows = Decision.objects.filter(step__run__in=run_ids, answer="").order_by("pk")
    for run_id, pk in rows.values_list("step__run", "pk"):
        found[run_id] = (*found.get(run_id, ()), pk)
    return found
