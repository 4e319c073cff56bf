"""The live hub: one per web process, it reads changes once and notifies all viewers.

Notices from Redis only say when to look; every two seconds it looks anyway. A viewer
has no queue, only a cursor: it takes from the room's last batches what it lacks, or,
if it was too slow, reads its rows anew.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from django.db import Error as DatabaseError
from django.db import close_old_connections, connections
from django.utils import translation

from runs.live.auth import Person
from runs.live.batches import (
    DRAFT_FRAME,
    ChangeBatch,
    DraftText,
    Head,
    RendererState,
    StreamRenderer,
)
from runs.live.nav_updates import NavSubscriber, NavUpdates
from runs.live.redis_listener import RedisListener
from runs.models import Run
from runs.redis_streams import Notice, TextDelta

POLL_SECONDS = 2.0
"""Between two looks at all watched runs, notices or not."""
CANCEL_AGAIN_SECONDS = 0.05
"""Between two cancellations of the tasks when the server stops."""
SILENCE_SECONDS = 15.0
"""After which a comment is sent, and the viewer's right to watch is checked again."""
MAX_BATCHES = 32
MAX_RUNS_PER_READ = 50
"""Runs read in one go; more would make the first wait for the last."""
MAX_IDS_PER_QUERY = 900
MAX_HEADS_PER_READ = 4
MIN_HEAD_INTERVAL = 0.5
"""Between two heads of one run."""
MAX_HEADS_PER_SECOND = 20
"""Of all runs together; with many watched runs each is sent less often."""
UNREAD = -1
"""The seq of a room that has read nothing yet."""

logger = logging.getLogger(__name__)
T = TypeVar("T")


class RunChannel:
    """One run in one form, and everybody who watches it so."""

    def __init__(self, form: StreamRenderer, run_id: int) -> None:
        self.renderer, self.run_id = form, run_id
        self.viewers: set[Viewer] = set()
        self.seq = UNREAD
        """Up to which the room has read."""
        self.batches: deque[ChangeBatch] = deque(maxlen=MAX_BATCHES)
        self.renderer_state = RendererState()
        self.draft: DraftText | None = None
        self.pending_drafts: list[TextDelta] | None = []
        """Pieces received while earlier ones are fetched; None once those are here."""
        self.next_call = 0
        self.fence = 0
        self.head: Head = {}
        self.head_versions: dict[str, int] = {}
        """How often each part of the head was new."""
        self.head_due = 0.0
        self.is_deleted = False

    def add_batch(self, batch: ChangeBatch) -> None:
        if batch.seq <= self.seq:
            return
        self.seq = batch.seq
        self.batches.append(batch)
        self.next_call, self.fence = batch.next_call, batch.fence
        draft = self.draft
        if draft and (
            not batch.is_running
            or draft.number < batch.next_call
            or draft.fence < batch.fence
            or draft.attempt <= batch.failed_attempt
        ):
            self.draft = None
        self.wake()

    def add_draft(self, piece: TextDelta) -> None:
        """Add a piece to the text so far; a gap or a new attempt begins anew."""
        if self.pending_drafts is not None:
            self.pending_drafts.append(piece)
            return
        key = (piece.number, piece.fence, piece.attempt)
        known = self.draft
        if piece.number < self.next_call or piece.fence < self.fence:
            return
        if known and key == known.key:
            have = known.start + len(known.text)
            if known.start <= piece.at < have:
                return
            if piece.at == have:
                known.text += piece.text
                self.wake()
                return
        elif known and key < known.key:
            return
        self.draft = DraftText(
            piece.fence,
            piece.number,
            piece.attempt,
            piece.at,
            piece.text,
            self.run_id,
        )
        self.wake()

    def replay_drafts(self, pieces: Iterable[TextDelta]) -> None:
        """Take what was written before anyone watched, then what arrived meanwhile.

        In the other order, what arrived would be lost and leave a gap.
        """
        early, self.pending_drafts = self.pending_drafts or [], None
        for piece in (*pieces, *early):
            self.add_draft(piece)

    def update_head(self, head: Head) -> None:
        """Make the parts of `head` known that differ from what they were."""
        for name, message in head.items():
            if self.head.get(name) != message:
                self.head[name] = message
                self.head_versions[name] = self.head_versions.get(name, 0) + 1
        self.wake()

    def render(self, work: Callable[[], T]) -> T:
        """Do `work` in the language of the viewers."""
        with translation.override(self.renderer.language):
            return work()

    def wake(self) -> None:
        for viewer in self.viewers:
            viewer.event.set()


class Viewer:
    """One open stream."""

    def __init__(
        self, hub: "Hub", room: RunChannel, *, after: int, person: Person | None = None
    ) -> None:
        self._hub, self._channel = hub, room
        self.event = asyncio.Event()
        self.nav_subscriber = NavSubscriber(person, self.event) if person else None
        self.cursor = after
        self.is_closed = False
        self._has_joined = False
        self._draft: DraftText | None = None
        self._sent = 0
        self._head_versions: dict[str, int] = {}

    def close(self) -> None:
        """End `messages` soon."""
        self.is_closed = True
        self.event.set()

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield what to send until the run is over; an empty one after a silence."""
        while not self.is_closed and not self._hub.is_stopping:
            batch = await self._next_batch()
            if batch is not None:
                yield self._channel.renderer.render_message(batch, self.cursor)
                self.cursor = max(self.cursor, batch.seq)
                self._draft = None
                if batch.is_over:
                    return
            elif self._channel.is_deleted:
                return
            elif await self._render_backlog():
                continue
            elif message := self._next_unnumbered():
                yield message
            elif not await self._wait():
                yield b""

    async def _next_batch(self) -> ChangeBatch | None:
        """Return the batch that follows the cursor; None while there is none."""
        room = self._channel
        if self._has_joined:
            if self.cursor >= room.seq:
                return None
            for batch in room.batches:
                if batch.since <= self.cursor < batch.seq:
                    return batch
        while not (room.is_deleted or self.is_closed or self._hub.is_stopping):
            found = await self._hub.read_for(room, self.cursor)
            if found is not None:
                self._has_joined = True
                return found
        return None

    async def _render_backlog(self) -> bool:
        """Render a long text in pieces, while others are served; True if it was."""
        room, has_paused = self._channel, False
        if self._has_joined and room.draft:
            for _ in room.renderer.render_backlog(room.draft):
                await asyncio.sleep(0)
                has_paused = True
        return has_paused

    def _next_unnumbered(self) -> bytes:
        """Return a piece of draft or a pulse that was not sent yet."""
        room = self._channel
        if not self._has_joined:
            return b""
        if self._head_versions != room.head_versions:
            return self._render_head()
        if self.nav_subscriber and (
            news := self._hub.nav_updates.render_news_for(self.nav_subscriber)
        ):
            return news
        draft = room.draft
        if draft is None:
            return b""
        if draft is not self._draft:
            self._draft, self._sent = draft, len(draft.text)
            return room.render(partial(room.renderer.render_draft, draft, None))
        sent, self._sent = self._sent, len(draft.text)
        if self._sent == sent:
            return b""
        return room.render(partial(room.renderer.render_draft, draft, sent))

    def _render_head(self) -> bytes:
        room = self._channel
        news = {
            name: room.head[name]
            for name, n in room.head_versions.items()
            if self._head_versions.get(name) != n
        }
        self._head_versions = dict(room.head_versions)
        if DRAFT_FRAME in news:
            self._draft = None
        head = b"".join(news.values())
        return head + b"\n"

    async def _wait(self) -> bool:
        """Wait for news; False if there was none for a while."""
        self.event.clear()
        if self.is_closed or self._hub.is_stopping:
            return True
        return await wait_for_event(self.event)


class PersonViewer:
    """An open stream of a page that shows no running run."""

    def __init__(self, hub: "Hub", person: Person, *, in_inbox: bool) -> None:
        self._hub = hub
        self.nav_subscriber = NavSubscriber(person, asyncio.Event(), in_inbox=in_inbox)
        self.is_closed = False

    def close(self) -> None:
        """End `messages` soon."""
        self.is_closed = True
        self.nav_subscriber.event.set()

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield updates of the page; an empty message after a silence."""
        event = self.nav_subscriber.event
        while not self.is_closed and not self._hub.is_stopping:
            event.clear()
            if news := self._hub.nav_updates.render_news_for(self.nav_subscriber):
                yield news
            elif not await wait_for_event(event):
                yield b""


async def wait_for_event(event: asyncio.Event) -> bool:
    """Wait for `event`; False if nothing happened for a while."""
    # A timer is cheaper than `wait_for`, which makes a task for each wait.
    timer = asyncio.get_running_loop().call_later(SILENCE_SECONDS, event.set)
    before = timer.when()
    await event.wait()
    timer.cancel()
    return asyncio.get_running_loop().time() < before


class Hub:
    """All rooms of this process, one database thread, one Redis connection."""

    def __init__(self) -> None:
        self.is_stopping = False
        self._channels: dict[int, dict[int, RunChannel]] = {}
        """By run, then by form."""
        self._dirty: dict[RunChannel, None] = {}
        self._has_dirty = asyncio.Event()
        self._stale: dict[RunChannel, None] = {}
        self._has_stale = asyncio.Event()
        self._readings: dict[
            tuple[RunChannel, int], asyncio.Task[ChangeBatch | None]
        ] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="live-reader")
        self.nav_updates = NavUpdates(self.run_in_thread)
        self._listener = RedisListener(
            on_notice=self.handle_notice, on_draft=self.add_draft
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._replays: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        for forever in (
            self._listener.listen,
            self._poll,
            self._read_dirty,
            self._read_stale,
            self.nav_updates.poll,
        ):
            self._tasks.append(asyncio.create_task(repeat_forever(forever)))

    def stop_streams(self) -> None:
        """End every stream; called when the server begins to shut down."""
        self.is_stopping = True
        for room in self._all_channels():
            room.wake()
        self.nav_updates.wake()

    async def stop(self) -> None:
        """End everything and give back the connections."""
        self.stop_streams()
        await end_tasks(self._tasks)
        await self._listener.close()
        with suppress(RuntimeError):
            self._thread.submit(connections.close_all)
        self._thread.shutdown(wait=False)

    def subscribe_person(self, person: Person, *, in_inbox: bool) -> PersonViewer:
        viewer = PersonViewer(self, person, in_inbox=in_inbox)
        self.nav_updates.subscribe(viewer.nav_subscriber)
        return viewer

    def subscribe(
        self,
        form: StreamRenderer,
        run_id: int,
        *,
        after: int,
        person: Person | None = None,
    ) -> Viewer:
        """Register a viewer; from here on nothing of the run is missed.

        A `person` is also notified of what needs them.
        """
        self._listener.resume()
        rooms = self._channels.setdefault(run_id, {})
        room = rooms.get(id(form))
        if room is None:
            room = rooms[id(form)] = RunChannel(form, run_id)
            recall = asyncio.create_task(self._replay_drafts(room))
            self._replays.add(recall)
            recall.add_done_callback(self._replays.discard)
        viewer = Viewer(self, room, after=after, person=person)
        room.viewers.add(viewer)
        if viewer.nav_subscriber:
            self.nav_updates.subscribe(viewer.nav_subscriber)
        return viewer

    def unsubscribe(self, viewer: Viewer | PersonViewer) -> None:
        """Forget a viewer, and its room with the last one."""
        if viewer.nav_subscriber:
            self.nav_updates.unsubscribe(viewer.nav_subscriber)
        if isinstance(viewer, PersonViewer):
            return
        room = viewer._channel
        room.viewers.discard(viewer)
        if room.viewers:
            return
        self._dirty.pop(room, None)
        self._stale.pop(room, None)
        rooms = self._channels.get(room.run_id, {})
        rooms.pop(id(room.renderer), None)
        if not rooms:
            self._channels.pop(room.run_id, None)
        if not self._channels:
            self._listener.pause()

    @property
    def viewers(self) -> int:
        return sum(len(room.viewers) for room in self._all_channels())

    def _all_channels(self) -> list[RunChannel]:
        return [room for rooms in self._channels.values() for room in rooms.values()]

    async def run_in_thread(self, work: Callable[[], T]) -> T:
        """Do database work in the one thread that may."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, run_with_connection, work)

    async def read_for(self, room: RunChannel, after: int) -> ChangeBatch | None:
        """Read for viewers at `after`; those who ask at once share one reading."""
        key = (room, after)
        task = self._readings.get(key)
        if task is None:
            task = asyncio.create_task(self._read_one(room, after))
            self._readings[key] = task
            task.add_done_callback(lambda _: self._readings.pop(key, None))
        return await asyncio.shield(task)

    def handle_notice(self, notice: Notice) -> None:
        for room in self._channels.get(notice.run_id, {}).values():
            if not notice.seq or notice.seq > room.seq:
                self._mark_dirty(room)

    def add_draft(self, piece: TextDelta) -> None:
        for room in self._channels.get(piece.run_id, {}).values():
            room.add_draft(piece)

    def _mark_dirty(self, room: RunChannel) -> None:
        self._dirty[room] = None
        self._has_dirty.set()

    async def _read_one(self, room: RunChannel, after: int) -> ChangeBatch | None:
        try:
            batches = await self.run_in_thread(
                lambda: room.render(
                    lambda: room.renderer.read_batches(
                        {room.run_id: after}, {room.run_id: room.renderer_state}
                    )
                )
            )
        except DatabaseError as error:
            logger.warning("A stream waits for the database: %s", error)
            await asyncio.sleep(1)
            return None
        if not batches:
            room.is_deleted = True
            return None
        if room.seq == UNREAD:
            self._add_batch(room, batches[0])
        return batches[0]

    async def _read_dirty(self) -> None:
        """Read the changes of soiled rooms, many in one go."""
        await self._has_dirty.wait()
        rooms = list(self._dirty)[:MAX_RUNS_PER_READ]
        for room in rooms:
            del self._dirty[room]
        if not self._dirty:
            self._has_dirty.clear()
        forms: dict[int, list[RunChannel]] = {}
        for room in rooms:
            if (
                room.seq > UNREAD
            ):  # before the first reading its viewers read by themselves
                forms.setdefault(id(room.renderer), []).append(room)
        for group in forms.values():
            try:
                await self._run_isolated(group, self._read_group)
            except DatabaseError:
                for room in group:
                    if room.viewers:
                        self._mark_dirty(room)
                raise

    async def _run_isolated(
        self,
        rooms: list[RunChannel],
        do: Callable[[list[RunChannel]], Coroutine[Any, Any, None]],
    ) -> None:
        """Do it for all rooms at once, and one by one if that fails.

        What one run holds must never stop the live pages of the others.
        """
        try:
            await do(rooms)
        except DatabaseError:
            raise
        except Exception:  # top-level handler: no run may stop the readers
            if len(rooms) == 1:
                logger.exception("The live page of run %d stumbled.", rooms[0].run_id)
                return
            for room in rooms:
                await self._run_isolated([room], do)

    async def _read_group(self, rooms: list[RunChannel]) -> None:
        wanted = {room.run_id: room.seq for room in rooms}
        memories = {room.run_id: room.renderer_state for room in rooms}
        form = rooms[0].renderer
        by_id = {room.run_id: room for room in rooms}
        for batch in await self.run_in_thread(
            lambda: rooms[0].render(lambda: form.read_batches(wanted, memories))
        ):
            self._add_batch(by_id[batch.run_id], batch)

    def _add_batch(self, room: RunChannel, batch: ChangeBatch) -> None:
        room.add_batch(batch)
        if batch.has_more:
            self._mark_dirty(room)
        if not batch.is_over:
            self._mark_stale(room)

    def _mark_stale(self, room: RunChannel) -> None:
        self._stale[room] = None
        self._has_stale.set()

    async def _read_stale(self) -> None:
        """Update what shows runs as a whole: at once, then twice a second at most.

        A few runs at a time, so that new rows of others do not wait long.
        """
        await self._has_stale.wait()
        now = asyncio.get_running_loop().time()
        due = [room for room in self._stale if room.head_due <= now][
            :MAX_HEADS_PER_READ
        ]
        if not due:
            await asyncio.sleep(0.05)
            return
        pause = max(MIN_HEAD_INTERVAL, len(self._all_channels()) / MAX_HEADS_PER_SECOND)
        forms: dict[int, list[RunChannel]] = {}
        for room in due:
            del self._stale[room]
            room.head_due = now + pause
            forms.setdefault(id(room.renderer), []).append(room)
        if not self._stale:
            self._has_stale.clear()
        for group in forms.values():
            await self._run_isolated(group, self._read_heads)

    async def _read_heads(self, rooms: list[RunChannel]) -> None:
        memories = {room.run_id: room.renderer_state for room in rooms}
        for room in rooms:
            room.renderer_state.is_writing = room.draft is not None
        read = partial(rooms[0].renderer.render_heads, list(memories), memories)
        heads = await self.run_in_thread(lambda: rooms[0].render(read))
        for room in rooms:
            room.update_head(heads.get(room.run_id, {}))
            if room.renderer_state.is_writing != (room.draft is not None):
                self._mark_stale(room)  # a draft began or ended meanwhile

    async def _poll(self) -> None:
        """Ask for the seq of all watched runs at once, and soil what changed."""
        await asyncio.sleep(POLL_SECONDS)
        rooms = self._all_channels()
        if not rooms:
            return
        ids = sorted({room.run_id for room in rooms})
        known = await self.run_in_thread(lambda: read_seqs(ids))
        for room in rooms:
            seq = known.get(room.run_id)
            if seq is None:
                room.is_deleted = True
                room.wake()
            elif UNREAD < room.seq < seq:
                self._mark_dirty(room)
        forms: dict[int, list[RunChannel]] = {}
        for room in rooms:
            if room.seq > UNREAD:
                forms.setdefault(id(room.renderer), []).append(room)
        for group in forms.values():
            await self._run_isolated(group, self._find_stale)

    async def _find_stale(self, rooms: list[RunChannel]) -> None:
        by_id = {room.run_id: room for room in rooms}
        memories = {room.run_id: room.renderer_state for room in rooms}
        find = partial(rooms[0].renderer.find_stale_runs, list(memories), memories)
        for run_id in await self.run_in_thread(lambda: rooms[0].render(find)):
            self._mark_stale(by_id[run_id])

    async def _replay_drafts(self, room: RunChannel) -> None:
        """Give a new room what its model wrote before anyone watched."""
        pieces: list[TextDelta] = []
        try:
            pieces = await self._listener.recent_drafts(room.run_id)
        finally:
            room.replay_drafts(pieces)


def run_with_connection(work: Callable[[], T]) -> T:
    """Do `work` and give the connection back to the pool."""
    close_old_connections()
    try:
        return work()
    finally:
        close_old_connections()


def read_seqs(run_ids: list[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for start in range(0, len(run_ids), MAX_IDS_PER_QUERY):
        some = run_ids[start : start + MAX_IDS_PER_QUERY]
        found.update(Run.objects.filter(pk__in=some).values_list("pk", "seq"))
    return found


async def end_tasks(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel the tasks until they have ended.

    Once is not enough: redis-py can swallow a cancellation, and then waits for entries
    until its read times out.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=CANCEL_AGAIN_SECONDS)
    await asyncio.gather(*tasks, return_exceptions=True)


async def repeat_forever(once: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Repeat `once`; after an error, wait a second.

    redis-py can swallow a cancellation, so it is also looked for here.
    """
    task = asyncio.current_task()
    while task is not None and not task.cancelling():
        try:
            await once()
        except DatabaseError as error:
            logger.warning("Live pages wait for the database: %s", error)
            await asyncio.sleep(1)
        except Exception:
            logger.exception("Live pages stumbled.")
            await asyncio.sleep(1)
