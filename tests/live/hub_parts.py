"""Parts of tests of the live hub: a hub, a worker's commits, a viewer's eyes."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from django.db import transaction
from django.utils import timezone

from runs import redis_streams as stream
from runs.live.hub import Hub, Viewer
from runs.models import AgentStep, ModelAttempt, ModelCall, Run


@asynccontextmanager
async def running_hub() -> AsyncIterator[Hub]:
    """Run a hub for the length of the block."""
    hub = Hub()
    hub.start()
    await asyncio.sleep(0.05)
    try:
        yield hub
    finally:
        await hub.stop()
        await hub_thread_is_done(hub)


async def hub_thread_is_done(hub: Hub) -> None:
    """Wait until the reader has given its connection back."""
    await asyncio.to_thread(hub._thread.shutdown, True)


def commit_reply(run: Run, *, notice: bool = True) -> int:
    """Commit a model call with one started step, as a worker does; return the seq."""
    with transaction.atomic():
        row = Run.objects.select_for_update().get(pk=run.pk)
        row.seq += 1
        call = ModelCall.objects.create(
            run=row,
            number=row.next_number,
            at_index=row.next_index,
            round=row.next_number + 1,
            reply={"text": f"Thought {row.next_number}"},
            digest="0" * 64,
            started_at=timezone.now(),
            elapsed=0.1,
            created_seq=row.seq,
            changed_seq=row.seq,
        )
        AgentStep.objects.create(
            run=row,
            index=row.next_index,
            model_call=call,
            round=call.round,
            tool="look",
            status="started",
            started_at=timezone.now(),
            created_seq=row.seq,
            changed_seq=row.seq,
        )
        row.next_index += 1
        row.next_number += 1
        row.rounds += 1
        row.save()
    if notice:
        stream.publish_run_notice(run.pk, row.seq)
    return row.seq


def commit_outcome(run: Run, *, notice: bool = True) -> int:
    """Commit the outcome of the step under way."""
    with transaction.atomic():
        row = Run.objects.select_for_update().get(pk=run.pk)
        row.seq += 1
        row.save(update_fields=["seq"])
        AgentStep.objects.filter(run=row, status="started").update(
            status="succeeded", observation="seen", duration=0.1, changed_seq=row.seq
        )
    if notice:
        stream.publish_run_notice(run.pk, row.seq)
    return row.seq


def commit_attempt(run: Run, attempt: int, *, retry_in: float | None = 3.0) -> int:
    """Commit a failed attempt of the next model call, as a worker does."""
    with transaction.atomic():
        row = Run.objects.select_for_update().get(pk=run.pk)
        row.seq += 1
        row.save(update_fields=["seq"])
        ModelAttempt.objects.create(
            run=row,
            number=row.next_number,
            attempt=attempt,
            code="overloaded",
            message="The server answered 500.",
            retry_in=retry_in,
            started_at=timezone.now(),
            elapsed=0.2,
            created_seq=row.seq,
        )
    stream.publish_run_notice(run.pk, row.seq)
    return row.seq


def commit_end(run: Run, *, notice: bool = True, status: str = "succeeded") -> None:
    """Commit the end of the run."""
    with transaction.atomic():
        row = Run.objects.select_for_update().get(pk=run.pk)
        row.seq += 1
        row.status, row.lease_until = status, None
        row.ended_at, row.output = timezone.now(), "**Done**"
        row.save()
    if notice:
        stream.publish_run_notice(run.pk, row.seq)


def work(run: Run, *, rounds: int, notice: bool = True) -> None:
    """Commit some rounds and the end."""
    for _ in range(rounds):
        commit_reply(run, notice=notice)
        commit_outcome(run, notice=notice)
    commit_end(run, notice=notice)


async def seen_until(
    viewer: Viewer, done: Callable[[list[bytes]], bool], *, seconds: float = 60
) -> list[bytes]:
    """Return what a viewer is sent until `done`, or until the stream ends."""
    messages: list[bytes] = []
    async with asyncio.timeout(seconds):
        async for message in viewer.messages():
            messages.append(message)
            if done(messages):
                break
    return messages


def events_in(messages: list[bytes]) -> list[tuple[str, dict[str, Any]]]:
    """Return the named events with their JSON."""
    found = []
    for block in b"".join(messages).decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line)
        if "event" in fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


class Browser:
    """As much of htmx as the page's stream needs: appends, replaces, deletes by id."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, str]] = []
        self.appended: list[int] = []
        self.is_over = False
        self.last_id = 0

    def take(self, message: bytes) -> None:
        """Apply one message as the page would."""
        lines = message.decode().splitlines()
        for line in lines:
            if line.startswith("id: "):
                self.last_id = int(line[4:])
        html = "\n".join(line[6:] for line in lines if line.startswith("data: "))
        parts = re.findall(
            r'<hx-partial hx-target="(.*?)" hx-swap="(.*?)">(.*?)</hx-partial>',
            html,
            re.DOTALL,
        )
        for target, swap, inner in parts:
            self._swap(target, swap, inner)

    def _swap(self, target: str, swap: str, inner: str) -> None:
        numbers = [n for n, _ in self.rows]
        if target == "#run-live":
            self.is_over = True
        elif target == "#run-steps[data-end]":
            number = int(re.search(r'id="run-step-(\d+)"', inner)[1])
            self.rows.append((number, inner))
            self.appended.append(number)
        elif found := re.fullmatch(r"#run-step-(\d+)", target):
            number = int(found[1])
            if number in numbers:
                place = numbers.index(number)
                self.rows[place : place + 1] = (
                    [] if swap == "delete" else [(number, inner)]
                )
