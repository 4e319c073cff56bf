"""The stream of turns: runs as a chat shows them, several in one connection.

Each message is one whole turn, put in the place of the one before; what a model
writes meanwhile is added to the turn's draft.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from typing import Protocol

from django.conf import settings
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from runs.live.batches import (
    DRAFT_FRAME,
    ChangeBatch,
    DraftText,
    Fragment,
    Head,
    RendererState,
)
from runs.live.draft_updates import render_draft_update
from runs.live.sse import format_element_update, format_text_update
from runs.models import ModelAttempt, Run
from runs.services.health.workers import has_live_worker, is_lease_expired
from runs.store.database_clock import read_time_for_runs
from runs.views.chat.turns import build_run_turn
from runs.views.run.context import select_page_relations
from runs.views.run.state import load_queue_places

MAX_QUEUED_MESSAGES = 2
"""Messages of a stream that may wait to be sent."""


class TurnRenderer:
    """Fragments of `templates/turns/` as unnamed messages."""

    def __init__(self, language: str = settings.LANGUAGE_CODE) -> None:
        self.language = language

    def read_batches(
        self, wanted: dict[int, int], memories: dict[int, RendererState]
    ) -> list[ChangeBatch]:
        runs = list(select_page_relations(Run.objects.filter(pk__in=wanted)))
        failed = last_failed_attempts(runs)
        return [
            build_turn_batch(run, wanted[run.pk], failed_attempt=failed.get(run.pk, 0))
            for run in runs
        ]

    def find_stale_runs(
        self, run_ids: list[int], memories: dict[int, RendererState]
    ) -> list[int]:
        """Return runs with another place in the queue, or whose worker went or came."""
        runs = load_waiting_and_running(run_ids)
        queued = [run.pk for run in runs if run.status == Run.Status.QUEUED]
        places = load_queue_places(queued) if queued else {}
        lost = find_lost_runs(runs)
        alive = has_live_worker() if places or lost else True
        lives: dict[int, object] = {pk: (place, alive) for pk, place in places.items()}
        lives |= dict.fromkeys(lost, ("lost", alive))
        changed = []
        for run in runs:
            life = lives.get(run.pk)
            if memories[run.pk].entries.get("life") != life:
                memories[run.pk].entries["life"] = life
                changed.append(run.pk)
        return changed

    def render_heads(
        self, run_ids: list[int], memories: dict[int, RendererState]
    ) -> dict[int, Head]:
        """Return queued turns anew, and those that lost their worker or have one again.

        All others change with their rows only.
        """
        runs = load_waiting_and_running(run_ids)
        lost = find_lost_runs(runs)
        due = {run.pk for run in runs if run.status == Run.Status.QUEUED} | lost
        due |= {run.pk for run in runs if "was_lost" in memories[run.pk].entries}
        for pk in lost:
            memories[pk].entries["was_lost"] = True
        found = select_page_relations(Run.objects.filter(pk__in=due)) if due else ()
        return {run.pk: {DRAFT_FRAME: render_turn_update(run)} for run in found}

    def render_message(self, batch: ChangeBatch, cursor: int) -> bytes:
        """Return one message; without an id, for a page always begins anew."""
        return b"".join([*batch.messages_after(cursor), b"\n"])

    def render_backlog(self, draft: DraftText) -> Iterator[None]:
        return draft.rendering.advance_in_steps(draft.text)

    def render_draft(self, draft: DraftText, sent: int | None) -> bytes:
        update = render_draft_update(f"turn-draft-{draft.run_id}", draft, sent)
        if sent is None:
            # A turn without a place for the draft has something else to say.
            turn = f"#turn-answer-{draft.run_id}:has(> .draft)"
            words = f"{turn} > .did > summary > [role=status]"
            update += format_text_update(words, "innerHTML", _("The model is writing"))
        return update + b"\n" if update else b""


class MessageSource(Protocol):
    """Whoever yields messages until it is over."""

    def messages(self) -> AsyncIterator[bytes]:
        """Yield what to send; an empty one after a silence."""
        ...


async def merge_messages(viewers: Sequence[MessageSource]) -> AsyncIterator[bytes]:
    """Yield the messages of all viewers as they come, until all are over."""
    queue: asyncio.Queue[bytes | None] = asyncio.Queue(
        MAX_QUEUED_MESSAGES * len(viewers)
    )

    async def follow(viewer: MessageSource) -> None:
        try:
            async for message in viewer.messages():
                await queue.put(message)
        finally:
            await queue.put(None)

    tasks = [asyncio.create_task(follow(viewer)) for viewer in viewers]
    left = len(tasks)
    try:
        while left:
            message = await queue.get()
            if message is None:
                left -= 1
            else:
                yield message
    finally:
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)


def render_turns_end(run_ids: Sequence[int]) -> bytes:
    """Return the message that ends a stream: nothing connects again."""
    name = "turn-live-" + "-".join(str(pk) for pk in run_ids)
    gone = f'<div id="{name}" hidden></div>'
    return format_element_update(f"#{name}", "outerHTML", gone) + b"\n"


def build_turn_batch(run: Run, since: int, *, failed_attempt: int) -> ChangeBatch:
    """Return the whole turn, if it has changed after `since`."""
    html = render_turn_update(run)
    return ChangeBatch(
        run_id=run.pk,
        since=since,
        seq=run.seq,
        fragments=(Fragment(0, run.seq, html, html),) if run.seq > since else (),
        is_over=run.is_over,
        next_call=run.next_number,
        failed_attempt=failed_attempt,
        fence=run.fence,
        is_running=run.status == Run.Status.RUNNING,
    )


def render_turn_update(run: Run) -> bytes:
    context = {"run": run, "turn": build_run_turn(run)}
    html = render_to_string("turns/_answer.html", context)
    return format_element_update(f"#turn-answer-{run.pk}", "outerHTML", html)


def load_waiting_and_running(run_ids: Sequence[int]) -> list[Run]:
    """Return those of the runs that are queued or running, with their leases only."""
    status = [Run.Status.QUEUED, Run.Status.RUNNING]
    runs = Run.objects.filter(pk__in=run_ids, status__in=status)
    return list(runs.only("status", "lease_until"))


def find_lost_runs(runs: Sequence[Run]) -> set[int]:
    """Return the running runs whose workers have no heartbeat."""
    now = read_time_for_runs(runs)
    return {
        run.pk for run in runs if is_lease_expired(run.status, run.lease_until, now)
    }


def last_failed_attempts(runs: list[Run]) -> dict[int, int]:
    """Return the number of the last failed attempt of each run's next call."""
    numbers = {run.pk: run.next_number for run in runs}
    rows = ModelAttempt.objects.filter(
        run__in=numbers, number__in=set(numbers.values())
    ).order_by("attempt")
    return {
        row.run_id: row.attempt for row in rows if row.number == numbers[row.run_id]
    }
