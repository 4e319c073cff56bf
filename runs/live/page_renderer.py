"""The page's stream: parts of the run page, for anyone who may see the run.

A fragment holds nothing of one viewer. What needs a person's rights or forms is put
into the page as a part that loads itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _

from runs.engine.types import ExecutorOptions
from runs.live.batches import (
    DRAFT_FRAME,
    ChangeBatch,
    DraftText,
    Fragment,
    Head,
    RendererState,
)
from runs.live.changes import Changes, Sources, read_changes
from runs.live.draft_updates import render_draft_update
from runs.live.sse import format_element_update, format_text_update
from runs.models import Decision, ModelAttempt, Run
from runs.services.health.workers import (
    can_be_taken_over,
    has_live_worker,
    is_lease_expired,
)
from runs.services.runs.limits import get_current_limits
from runs.store.database_clock import read_database_time, read_time_for_runs
from runs.ui.time_scale import Timeline
from runs.views.run.context import (
    detail_context,
    follow_context,
    open_failed_step,
    pending_row,
    select_page_relations,
)
from runs.views.run.params import ROW_FILTERS, RunPageParams
from runs.views.run.rows import (
    TimelineRow,
    build_call_row,
    build_failed_row,
    build_step_row,
    query_agent_steps,
    query_model_calls,
)
from runs.views.run.state import (
    RunState,
    load_open_tools,
    load_queue_places,
    run_state_context,
)
from runs.views.run.timeline import load_timeline
from runs.views.run.window import count_rows

FOLLOWER_PANE = "#run-detail:has(#run-follow)"
"""The right pane of those who have chosen no step."""
MAX_STALE_RUNS = 100

HEAD_PARTS = ("progress", "facts", "times", "steps_head", "whole", "now", "unbegun")
ACTIVE_PROGRESS = "#run-progress:not(:has(.need))"
NEWEST_ROWS = "#run-steps[data-end]"
"""The rows of those who see the newest; others load theirs by themselves."""


@dataclass
class PageCache:
    """What the page's stream keeps of a run between its batches."""

    timeline: Timeline
    limits: ExecutorOptions
    relations: dict[str, Any] = field(default_factory=dict)
    """Rows the run refers to, read once."""
    status_seq: int = 0
    """When the run's status, or what it asks a person, last changed."""
    status_fingerprint: tuple[Any, ...] = ()
    liveness: tuple[Any, ...] = ()
    """Lease, place in the queue and retry, as they were last sent."""
    retry_at: datetime | None = None
    was_lost: bool = False
    """Whether calls under way may be shown as those of a lost run."""


@dataclass(frozen=True)
class HeaderQueries:
    """What several runs' headers need, asked for once."""

    now: datetime
    """By the database's clock, if a run runs or waits."""
    doing: dict[int, list[str]] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)
    has_worker: bool = True

    @classmethod
    def for_runs(cls, runs: Sequence[Run]) -> "HeaderQueries":
        by_status: dict[str, list[int]] = {}
        for run in runs:
            by_status.setdefault(run.status, []).append(run.pk)
        running = by_status.get(Run.Status.RUNNING, [])
        queued = by_status.get(Run.Status.QUEUED, [])
        now = read_time_for_runs(runs)
        return cls(
            now=now,
            doing=load_open_tools(running) if running else {},
            places=load_queue_places(queued) if queued else {},
            has_worker=has_live_worker() if queued else can_be_taken_over(runs, now),
        )

    def state(self, run: Run, page_cache: PageCache) -> RunState:
        return RunState(
            run=run,
            timeline=page_cache.timeline,
            limits=page_cache.limits,
            now=self.now,
            open_tools=self.doing.get(run.pk, []),
            place=self.places.get(run.pk),
            has_worker=self.has_worker,
        )


class PageRenderer:
    """Fragments of `templates/runs/` as unnamed messages."""

    def __init__(self, language: str = settings.LANGUAGE_CODE) -> None:
        self.language = language

    def read_batches(
        self, wanted: dict[int, int], memories: dict[int, RendererState]
    ) -> list[ChangeBatch]:
        sources = Sources(
            runs=Run.objects.defer(*DEFERRED_FIELDS),
            calls=query_model_calls(wanted),
            steps=query_agent_steps(wanted),
        )
        found = read_changes(wanted, sources)
        failed = failed_attempts_by_call(found)
        questions = open_question_ids(
            [changes.run.pk for changes in found if changes.run.needs_a_person]
        )
        return [
            self._build_batch(
                changes,
                get_page_cache(changes, memories),
                failed=failed,
                questions=questions.get(changes.run.pk, ()),
            )
            for changes in found
        ]

    def find_stale_runs(
        self, run_ids: list[int], memories: dict[int, RendererState]
    ) -> list[int]:
        """Return runs with a renewed lease or another place in the queue."""
        rows = Run.objects.filter(pk__in=run_ids, status__in=["queued", "running"])
        lives = {
            pk: (lease, status)
            for pk, lease, status in rows.values_list("pk", "lease_until", "status")
        }
        queued = [pk for pk, life in lives.items() if life[1] == Run.Status.QUEUED]
        places = load_queue_places(queued) if queued else {}
        now = read_database_time()
        lost = {
            pk
            for pk, (lease, status) in lives.items()
            if is_lease_expired(status, lease, now)
        }
        alive = has_live_worker() if queued or lost else True
        changed = []
        for pk, (lease, status) in lives.items():
            page_cache = memories[pk].entries.get("page")
            if not isinstance(page_cache, PageCache):
                continue
            is_due = page_cache.retry_at is not None and page_cache.retry_at < now
            life = (lease, status, places.get(pk), alive, is_due, pk in lost)
            if page_cache.liveness != life:
                page_cache.liveness = life
                changed.append(pk)
        for pk, outage in load_outages_by_run(run_ids).items():
            page_cache = memories[pk].entries.get("page")
            if isinstance(page_cache, PageCache) and page_cache.liveness != outage:
                page_cache.liveness = outage
                changed.append(pk)
        return changed[:MAX_STALE_RUNS]

    def render_heads(
        self, run_ids: list[int], memories: dict[int, RendererState]
    ) -> dict[int, Head]:
        """Return the header, and the right pane of those who follow."""
        runs = list(Run.objects.filter(pk__in=run_ids).defer(*DEFERRED_FIELDS))
        around = HeaderQueries.for_runs(runs)
        message: dict[int, Head] = {}
        for run in runs:
            page_cache = memories[run.pk].entries.get("page")
            if isinstance(page_cache, PageCache) and not run.is_over:
                set_cached_relations(run, page_cache)
                state = around.state(run, page_cache)
                page_cache.retry_at = state.retry_at
                # A changed frame sends the draft again, so it does not mention it.
                frame = render_follow_pane(state)
                state.is_writing = memories[run.pk].is_writing and not state.is_lost
                message[run.pk] = {
                    "header": render_run_header(state),
                    DRAFT_FRAME: frame,
                }
                page_cache.was_lost |= state.is_lost
                if page_cache.was_lost:
                    message[run.pk]["rows"] = render_open_rows(state)
        return message

    def render_message(self, batch: ChangeBatch, cursor: int) -> bytes:
        """Return one message; its id is where a reconnecting page resumes."""
        return b"".join([b"id: %d\n" % batch.seq, *batch.messages_after(cursor), b"\n"])

    def render_backlog(self, draft: DraftText) -> Iterator[None]:
        return draft.rendering.advance_in_steps(draft.text)

    def render_draft(self, draft: DraftText, sent: int | None) -> bytes:
        """Return new text for the draft; no id, for nobody may resume from it."""
        if sent is None:
            whole = render_draft_update("draft-text", draft, None)
            row = format_text_update(
                "#run-now:has(.pulse) b", "innerHTML", _("The model is writing")
            )
            activity = format_text_update(
                f"{ACTIVE_PROGRESS} #run-activity",
                "innerHTML",
                _("The model is writing"),
            )
            return whole + row + activity + b"\n"
        update = render_draft_update("draft-text", draft, sent)
        return update + b"\n" if update else b""

    def _build_batch(
        self,
        changes: Changes,
        page_cache: PageCache,
        *,
        failed: "Attempts",
        questions: tuple[int, ...],
    ) -> ChangeBatch:
        run, seq = changes.run, changes.seq
        rows = build_step_rows(changes, page_cache.timeline, failed)
        fragments = [build_row_fragment(row) for row in rows]
        if changes.is_whole:
            fragments += self._status_fragments(changes, page_cache, questions)
        is_over = changes.is_whole and run.is_over
        if is_over:
            gone = format_element_update("#run-live", "outerHTML", ENDED_HTML)
            fragments.append(Fragment(0, END_SEQ, gone, gone))
        return ChangeBatch(
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

    def _status_fragments(
        self, changes: Changes, page_cache: PageCache, questions: tuple[int, ...]
    ) -> list[Fragment]:
        """Return all that shows the run as a whole, if its status has changed."""
        run, seq = changes.run, changes.seq
        sign = (run.status, run.cancel_requested_at is None, questions)
        if sign != page_cache.status_fingerprint:
            page_cache.status_fingerprint, page_cache.status_seq = sign, seq
        if page_cache.status_seq <= changes.since and not run.is_over:
            return []
        set_cached_relations(run, page_cache)
        state = HeaderQueries.for_runs([run]).state(run, page_cache)
        whole = (
            render_run_header(state)
            + render_follow_pane(state)
            + render_viewer_parts(run)
        )
        return [Fragment(0, page_cache.status_seq, whole, whole)]


def load_outages_by_run(run_ids: list[int]) -> dict[int, tuple[Any, ...]]:
    """Return what the headers of runs show that wait for a provider."""
    rows = Run.objects.filter(
        pk__in=run_ids, status=Run.Status.WAITING, waiting_since__isnull=False
    )
    outage = "waiting_provider__outages"
    names = ("pk", "probe_at", "probe_run", "ended_at")
    shown = [f"{outage}__{name}" for name in names]
    found: dict[int, tuple[Any, ...]] = {}
    for pk, *seen in rows.order_by("pk", f"{outage}__pk").values_list("pk", *shown):
        found[pk] = (*found.get(pk, ()), *seen)
    return found


Attempts = dict[tuple[int, int], list[ModelAttempt]]
"""Failed ones, by run and the call's number."""

END_SEQ = 2**63
"""Later than any cursor."""

ENDED_HTML = (
    '<div id="run-live" hidden></div>'
    '<div id="part-live" hidden hx-sse:connect="/live/me/" '
    'hx-trigger="load, every 2s" hx-sync="this:drop"></div>'
)
"""In the place of the stream: the one that every other page has."""

DEFERRED_FIELDS = ("inputs", "turn_ids", "given_turns", "output_log")
CACHED_RELATIONS = (
    "agent",
    "version",
    "owner",
    "spec",
    "worker",
    "canceled_by",
    "parent_step",
    "schedule",
)


def set_cached_relations(run: Run, page_cache: PageCache) -> None:
    """Give `run` the rows it refers to, from memory if they are the same."""
    for name in CACHED_RELATIONS:
        pk = getattr(run, f"{name}_id")
        known = page_cache.relations.get(name)
        if pk is not None and known is not None and known.pk == pk:
            setattr(run, name, known)
        else:
            page_cache.relations[name] = getattr(run, name)


def get_page_cache(changes: Changes, memories: dict[int, RendererState]) -> PageCache:
    """Return what is known of a run, made at the first reading."""
    run = changes.run
    page_cache = memories[run.pk].entries.get("page")
    if not isinstance(page_cache, PageCache):
        run = select_page_relations(Run.objects.defer(*DEFERRED_FIELDS)).get(pk=run.pk)
        page_cache = PageCache(load_timeline(run), get_current_limits(run))
        memories[run.pk].entries["page"] = page_cache
        return page_cache
    if page_cache.timeline.began is None:
        page_cache.timeline.began = run.started_at
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
        page_cache.timeline.add(start, seconds, kind)
    if run.status == Run.Status.RUNNING:
        page_cache.timeline.resume_work(run.queued_at)
    return page_cache


def failed_attempts_by_call(found: list[Changes]) -> Attempts:
    """Return what failed before the calls in `found`, perhaps shown long ago."""
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


def build_step_rows(
    changes: Changes, timeline: Timeline, failed: Attempts
) -> list[TimelineRow]:
    """Return the changed rows in the order of their numbers."""
    rows = [
        *(
            build_call_row(call, timeline, failed.get((call.run_id, call.number), []))
            for call in changes.calls
        ),
        *(build_step_row(step, timeline) for step in changes.steps),
    ]
    if changes.is_whole and (last := build_failed_row(changes.run, timeline)):
        rows.append(last)
    return sorted(rows, key=lambda row: row.number)


def build_row_fragment(row: TimelineRow) -> Fragment:
    """Return a row: appended for who lacks it, else put in the place of the old one."""
    html, target = render_step_row(row), f"#run-step-{row.number}"
    # Deleting first makes it harmless that a page asks again for what it has.
    new = format_element_update(target, "delete", "") + format_element_update(
        NEWEST_ROWS, "beforeend", html
    )
    return Fragment(
        row.created_seq,
        row.changed_seq,
        new,
        format_element_update(target, "outerHTML", html),
    )


def render_step_row(row: TimelineRow) -> str:
    return render_to_string("runs/_step.html", {"row": row})


def render_open_rows(state: RunState) -> bytes:
    """Return the calls under way anew, for those who see them as under way still."""
    run, rows = state.run, []
    last = query_agent_steps([run.pk]).filter(model_call__number=run.next_number - 1)
    for step in last.filter(status="started"):
        row = build_step_row(step, state.timeline, is_lost=state.is_lost)
        target = f"#run-step-{row.number}:has(.w-live, .w-cut)"
        rows.append(format_element_update(target, "outerHTML", render_step_row(row)))
    return b"".join(rows)


def render_run_header(state: RunState) -> bytes:
    counts = count_rows(state.run)
    context = {
        **run_state_context(state),
        "pending_row": pending_row(state),
        "total": counts.count_for(""),
    }
    parts = [
        format_element_update(
            f"#run-{name.replace('_', '-')}",
            "outerHTML",
            render_to_string(f"runs/_{name}.html", context),
        )
        for name in HEAD_PARTS
    ]
    counted = [
        format_element_update(
            f"#run-count-{name or 'all'}", "innerHTML", f"{counts.count_for(name):,}"
        )
        for name in ROW_FILTERS
    ]
    total = format_element_update(
        "#run-total", "innerHTML", f"{counts.count_for(''):,}"
    )
    return b"".join([*parts, *counted, total])


def render_follow_pane(state: RunState) -> bytes:
    """Return the right pane for those who have chosen no step.

    After a failure it shows the failed step, as a new page of the run does.
    """
    run = state.run
    choice = open_failed_step(run, RunPageParams())
    context = (
        detail_context(state, choice, {}) if run.is_over else follow_context(state)
    )
    html = render_to_string("runs/_detail.html", context)
    return format_element_update(FOLLOWER_PANE, "outerHTML", html)


def render_viewer_parts(run: Run) -> bytes:
    """Return parts that load themselves, since they depend on who looks.

    What stands there stays until they have come, so that nothing jumps twice.
    """
    pieces = []
    for name, swap in (("actions", "outerHTML"), ("banner", "outerMorph")):
        loader = format_html(
            '<i hidden hx-get="{1}" hx-trigger="load" hx-target="#run-{0}" '
            'hx-swap="{2}" hx-sync="#run-{0}:replace"></i>',
            name,
            reverse(f"run-{name}", args=[run.pk]),
            swap,
        )
        pieces.append(format_element_update(f"#run-{name}", "beforeend", loader))
    return b"".join(pieces)


def open_question_ids(run_ids: list[int]) -> dict[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {}
    rows = Decision.objects.filter(step__run__in=run_ids, answer="").order_by("pk")
    for run_id, pk in rows.values_list("step__run", "pk"):
        found[run_id] = (*found.get(run_id, ()), pk)
    return found
