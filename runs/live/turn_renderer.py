"""The stream of turns: runs as a chat shows them, several in one connection.

Each message is one whole turn, put in the place of the one before; what a model
writes meanwhile is added to the turn's draft.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Protocol

from django.template.loader import render_to_string

from runs.live.batches import FRAME, Batch, DraftText, Fragment, Head, Memory
from runs.live.page_form import partial
from runs.live.sse import element
from runs.models import ModelAttempt, Run
from runs.views.run_context import loaded
from runs.views.run_state import has_worker, places_of
from runs.views.turns import turn_of

WAITING = 2
"""Messages of a stream that may wait to be sent."""


class TurnForm:
    """Fragments of `templates/turns/` as unnamed messages."""

    def read(self, wanted: dict[int, int], memories: dict[int, Memory]) -> list[Batch]:
        """Return each run as it is now."""
        runs = list(loaded(Run.objects.filter(pk__in=wanted)))
        failed = failed_attempts(runs)
        return [
            batch_of(run, wanted[run.pk], failed_attempt=failed.get(run.pk, 0))
            for run in runs
        ]

    def stale(self, run_ids: list[int], memories: dict[int, Memory]) -> list[int]:
        """Return the queued runs with another place, or whose workers have gone."""
        queued = Run.objects.filter(pk__in=run_ids, status=Run.Status.QUEUED)
        places = places_of(queued.values_list("pk", flat=True))
        alive = has_worker() if places else True
        changed = []
        for pk, place in places.items():
            if memories[pk].kept.get("place") != (place, alive):
                memories[pk].kept["place"] = (place, alive)
                changed.append(pk)
        return changed

    def heads(self, run_ids: list[int], memories: dict[int, Memory]) -> dict[int, Head]:
        """Return queued turns anew; all others change with their rows only."""
        queued = Run.objects.filter(pk__in=run_ids, status=Run.Status.QUEUED)
        return {run.pk: {FRAME: turn_html(run)} for run in loaded(queued)}

    def writing(self, head: bytes) -> bytes:
        """Return the head: it says the same."""
        return head

    def message(self, batch: Batch, cursor: int) -> bytes:
        """Return one message; without an id, for a page always begins anew."""
        return b"".join([*batch.unseen(cursor), b"\n"])

    def draft(self, draft: DraftText, sent: int | None) -> bytes:
        """Return new text for the draft of its run."""
        target = f"#turn-draft-{draft.run_id}"
        if sent is None:
            missing = "… " if draft.start else ""
            return partial(target, "innerHTML", missing + draft.text) + b"\n"
        return partial(target, "beforeend", draft.text[sent:]) + b"\n"


class Messages(Protocol):
    """Whoever yields messages until it is over."""

    def messages(self) -> AsyncIterator[bytes]:
        """Yield what to send; an empty one after a silence."""
        ...


async def merged(viewers: Sequence[Messages]) -> AsyncIterator[bytes]:
    """Yield the messages of all viewers as they come, until all are over."""
    queue: asyncio.Queue[bytes | None] = asyncio.Queue(WAITING * len(viewers))

    async def follow(viewer: Messages) -> None:
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


def turns_over(run_ids: Sequence[int]) -> bytes:
    """Return the message that ends a stream: nothing connects again."""
    name = "turn-live-" + "-".join(str(pk) for pk in run_ids)
    gone = f'<div id="{name}" hidden></div>'
    return element(f"#{name}", "outerHTML", gone) + b"\n"


def batch_of(run: Run, since: int, *, failed_attempt: int) -> Batch:
    """Return the whole turn, where it has changed after `since`."""
    html = turn_html(run)
    return Batch(
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


def turn_html(run: Run) -> bytes:
    """Return the turn as an update of its place on the page."""
    context = {"run": run, "turn": turn_of(run)}
    html = render_to_string("turns/_answer.html", context)
    return element(f"#turn-answer-{run.pk}", "outerHTML", html)


def failed_attempts(runs: list[Run]) -> dict[int, int]:
    """Return the number of the last failed attempt of each run's next call."""
    numbers = {run.pk: run.next_number for run in runs}
    rows = ModelAttempt.objects.filter(
        run__in=numbers, number__in=set(numbers.values())
    ).order_by("attempt")
    return {
        row.run_id: row.attempt for row in rows if row.number == numbers[row.run_id]
    }
