"""The ASGI application of the live streams, beside Django."""

import asyncio
import json
import re
import signal
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from django.db import Error as DatabaseError

from runs.live.api_form import ApiForm
from runs.live.batches import Form
from runs.live.doors import Door, Key, ask_door, key_of
from runs.live.hub import SILENCE_SECONDS, Hub, PersonViewer, Viewer
from runs.live.page_form import PageForm
from runs.live.sse import COMMENT
from runs.live.turn_form import TurnForm, merged, turns_over
from runs.whole_number import whole_number

AnyViewer = Viewer | PersonViewer
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

PERSON = "/live/me/"
PAGE = re.compile(r"/live/runs/(\d{1,18})/$")
TURNS = re.compile(r"/live/turns/(\d{1,18}(?:-\d{1,18}){0,7})/$")
"""Up to eight runs in one stream, since browsers open few connections to a host."""
API = re.compile(r"/api/v1/runs/(\d{1,18})/events/?$")

STUCK_SECONDS = 30.0
"""After which a client that takes nothing is dropped; it reconnects by itself."""
FROM_THE_START = -1
"""Before the seq of a run to which nothing has happened yet."""
CHECKED_AT_MOST = SILENCE_SECONDS / 2
"""Age up to which one check serves several streams of the same key."""

HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]
REFUSALS = {
    401: "Sign in, or send a token that is valid.",
    404: "There is no such run.",
    405: "This address only answers GET.",
    503: "The database is away. Ask again in a moment.",
}

TOLD = {401: ((b"www-authenticate", b"Bearer"),), 405: ((b"allow", b"GET"),)}
"""Headers that HTTP wants beside these refusals."""
FIELDS = {401: "Authorization", 404: "id", 405: "method"}


class Wish(NamedTuple):
    """What a request asks for."""

    form: Form
    run_id: int | None
    """None for a page without a run."""
    after: int
    key: Key
    is_api: bool
    more: tuple[int, ...] = ()
    """Other runs in the same stream."""
    in_inbox: bool = False

    @property
    def run_ids(self) -> tuple[int, ...]:
        """All runs of the stream; none for a page without a run."""
        return () if self.run_id is None else (self.run_id, *self.more)


@dataclass
class Check:
    """The last answer of the door for one key and run."""

    at: float
    door: "asyncio.Task[Door]"


class LiveApp:
    """Streams, and the hub's life from the server's start to its end."""

    def __init__(self) -> None:
        self._page, self._api, self._turns = PageForm(), ApiForm(), TurnForm()
        self._hub: Hub | None = None
        self._checks: dict[tuple[Key, int | None], Check] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    @property
    def hub(self) -> Hub:
        """The hub; started here where the server sends no lifespan events."""
        if self._hub is None:
            self._hub = Hub()
            self._hub.start()
        return self._hub

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            kind = (await receive())["type"]
            if kind == "lifespan.startup":
                end_streams_at_signals(self.hub)
            elif self._hub is not None:
                await self._hub.stop()
                self._hub = None
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        wish = self._wish(scope)
        if wish is None or self.hub.is_stopping:
            await refuse(send, 404 if wish is None else 503)
            return
        if scope["method"] != "GET":
            await refuse(send, 405)
            return
        try:
            door = await self._may_watch(wish)
        except DatabaseError:
            await refuse(send, 503)
            return
        if door.answer != "ok":
            is_unknown = wish.is_api and door.answer == "stranger"
            await refuse(send, 401 if is_unknown else 404)
            return
        viewers = self._enter(wish, door)
        gone = asyncio.create_task(watch_for_leaving(receive, viewers))
        try:
            with suppress(TimeoutError, OSError):
                await self._stream(wish, viewers, send)
        finally:
            for viewer in viewers:
                self.hub.leave(viewer)
            gone.cancel()

    def _enter(self, wish: Wish, door: Door) -> list[AnyViewer]:
        """Begin to watch; only pages tell a person what needs them."""
        if wish.run_id is None:
            assert door.person is not None
            return [self.hub.enter_person(door.person, in_inbox=wish.in_inbox)]
        person = door.person if wish.form is self._page else None
        return [
            self.hub.enter(wish.form, run_id, after=wish.after, person=person)
            for run_id in wish.run_ids
        ]

    async def _stream(self, wish: Wish, viewers: list[AnyViewer], send: Send) -> None:
        clock = asyncio.get_running_loop().time
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        # Sent at once, so that proxies and clients know the stream is open.
        await write(send, b"retry: 1000\n\n")
        checked = clock()
        is_turns = wish.form is self._turns
        messages = merged(viewers) if is_turns else viewers[0].messages()
        async for message in messages:
            if clock() - checked >= SILENCE_SECONDS:
                checked = clock()
                if not await self._still_may(wish):
                    break
            await write(send, message or COMMENT)
        else:
            if is_turns and not self.hub.is_stopping:
                await write(send, turns_over(wish.run_ids))
        await send({"type": "http.response.body", "body": b""})

    async def _still_may(self, wish: Wish) -> bool:
        """Whether the right to watch still holds; a database away takes none away."""
        try:
            return (await self._may_watch(wish)).answer == "ok"
        except DatabaseError:
            return True

    async def _may_watch(self, wish: Wish) -> Door:
        """Ask the door for each run of the stream, or for the person alone."""
        door = await self._ask(wish.key, wish.run_id)
        for run_id in wish.more:
            if door.answer == "ok":
                door = await self._ask(wish.key, run_id)
        return door

    async def _ask(self, key: Key, run_id: int | None) -> Door:
        """Ask the door; streams of one key share an answer for a few seconds."""
        now = asyncio.get_running_loop().time()
        place = (key, run_id)
        known = self._checks.get(place)
        if known is None or now - known.at > CHECKED_AT_MOST:
            self._forget(now)
            asked = self.hub.in_thread(lambda: ask_door(key, run_id))
            known = Check(now, asyncio.create_task(asked))
            self._checks[place] = known
        try:
            door = await asyncio.shield(known.door)
        except DatabaseError:
            self._checks.pop(place, None)
            raise
        if door.answer != "ok":  # a door that opens is not kept closed
            self._checks.pop(place, None)
        return door

    def _forget(self, now: float) -> None:
        """Drop answers nobody may use any more."""
        old = [key for key, one in self._checks.items() if now - one.at > 60]
        for key in old:
            del self._checks[key]

    def _wish(self, scope: Scope) -> Wish | None:
        headers = {name.lower(): value for name, value in scope["headers"]}
        after = after_in(headers, scope.get("query_string", b""))
        key = key_of(headers)
        if scope["path"] == PERSON:
            in_inbox = b"inbox" in scope.get("query_string", b"")
            return Wish(self._page, None, 0, key, is_api=False, in_inbox=in_inbox)
        if found := PAGE.match(scope["path"]):
            return Wish(self._page, int(found[1]), after, key, is_api=False)
        if found := TURNS.match(scope["path"]):
            ids = dict.fromkeys(int(text) for text in found[1].split("-"))
            first, *more = ids
            return Wish(
                self._turns,
                first,
                FROM_THE_START,
                key,
                is_api=False,
                more=tuple(more),
            )
        if found := API.match(scope["path"]):
            return Wish(self._api, int(found[1]), after, key, is_api=True)
        return None


live_app = LiveApp()


def after_in(headers: dict[bytes, bytes], query: bytes) -> int:
    """Return after which seq a client wants to know: its last event id or `?after=`."""
    asked = parse_qs(query.decode("latin-1")).get("after", [""])[-1]
    for text in (headers.get(b"last-event-id", b"").decode("latin-1"), asked):
        if (seq := whole_number(text)) is not None:
            return seq
    return FROM_THE_START


async def watch_for_leaving(receive: Receive, viewers: list[AnyViewer]) -> None:
    """Close the viewers when their client goes away."""
    while (await receive())["type"] != "http.disconnect":
        pass
    for viewer in viewers:
        viewer.close()


async def write(send: Send, body: bytes) -> None:
    """Send a piece of a stream; raise `TimeoutError` where the client takes nothing."""
    async with asyncio.timeout(STUCK_SECONDS):
        await send({"type": "http.response.body", "body": body, "more_body": True})


async def refuse(send: Send, status: int) -> None:
    """Answer with a problem instead of a stream."""
    problem = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": REFUSALS[status],
        "errors": [{"field": FIELDS.get(status, ""), "message": REFUSALS[status]}],
    }
    kind = (b"content-type", b"application/problem+json")
    headers = [kind, *TOLD.get(status, ())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(problem).encode()})


def end_streams_at_signals(hub: Hub) -> None:
    """End all streams as soon as the server is told to stop.

    A server waits for open responses before it sends the lifespan's end, so that would
    be too late.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.getsignal(number)

        def end(
            signum: int, frame: Any, before: Any = before
        ) -> None:  # bound early: one for each signal
            loop.call_soon_threadsafe(hub.stop_streams)
            if callable(before):
                before(signum, frame)

        signal.signal(number, end)
