"""The ASGI application of the live streams, beside Django."""

import asyncio
import json
import re
import signal
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from django.conf import settings
from django.db import Error as DatabaseError

from runs.live.api_renderer import ApiRenderer
from runs.live.auth import (
    Credentials,
    Person,
    authorize_viewer,
    read_credentials,
    read_language,
)
from runs.live.hub import SILENCE_SECONDS, Hub, PersonViewer, Viewer
from runs.live.page_renderer import PageRenderer
from runs.live.sse import KEEPALIVE_COMMENT
from runs.live.turn_renderer import TurnRenderer, merge_messages, render_turns_end
from runs.whole_number import parse_whole_number

AnyViewer = Viewer | PersonViewer
AnyRenderer = PageRenderer | TurnRenderer | ApiRenderer
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

PERSON_PATH = "/live/me/"
RUN_PAGE_PATH = re.compile(r"/live/runs/(\d{1,18})/$")
TURNS_PATH = re.compile(r"/live/turns/(\d{1,18}(?:-\d{1,18}){0,7})/$")
"""Up to eight runs in one stream, since browsers open few connections to a host."""

SEND_TIMEOUT = 30.0
"""After which a client that takes nothing is dropped; it reconnects by itself."""
FROM_THE_START = -1
"""Before the seq of a run to which nothing has happened yet."""
ACCESS_CACHE_SECONDS = SILENCE_SECONDS / 2
"""Age up to which one check serves several streams of the same key."""

HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]
STREAM_RETRY_SECONDS = 10
"""After which some open streams may have ended."""
TOO_MANY_STREAMS = "You have too many open requests. Try again after some of them end."
REFUSALS = {
    404: "Run not found.",
    405: "Only GET is allowed.",
    429: TOO_MANY_STREAMS,
    503: "Database unavailable. Try again later.",
}

REFUSAL_HEADERS = {
    405: ((b"allow", b"GET"),),
    429: ((b"retry-after", b"%d" % STREAM_RETRY_SECONDS),),
}
"""Headers that HTTP wants beside these refusals."""
REFUSAL_CODES = {
    404: "not_found",
    405: "method_not_allowed",
    429: "too_many_requests",
    503: "unavailable",
}
REFUSAL_FIELDS = {404: "id", 405: "method"}


class StreamRequest(NamedTuple):
    renderer: type[AnyRenderer]
    run_id: int | None
    """None for a page without a run."""
    after: int
    credentials: Credentials
    other_run_ids: tuple[int, ...] = ()
    """Other runs in the same stream."""
    in_inbox: bool = False

    @property
    def run_ids(self) -> tuple[int, ...]:
        """All runs of the stream; none for a page without a run."""
        return () if self.run_id is None else (self.run_id, *self.other_run_ids)


@dataclass
class AccessCheck:
    """The last answer to whether one key may watch a run."""

    at: float
    person: "asyncio.Task[Person | None]"


class LiveApp:
    """Streams, and the hub's life from the server's start to its end."""

    def __init__(self) -> None:
        self._renderers: dict[tuple[type[AnyRenderer], str], AnyRenderer] = {}
        self._open_streams = Counter[int]()
        """By user."""
        self._languages: dict[Credentials, asyncio.Task[str]] = {}
        self._hub: Hub | None = None
        self._checks: dict[tuple[Credentials, int | None], AccessCheck] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._handle_lifespan(receive, send)
        elif scope["type"] == "http":
            await self._handle_request(scope, receive, send)

    @property
    def hub(self) -> Hub:
        """The hub; started here if the server sends no lifespan events."""
        if self._hub is None:
            self._hub = Hub()
            self._hub.start()
        return self._hub

    async def _handle_lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            kind = (await receive())["type"]
            if kind == "lifespan.startup":
                stop_streams_on_signals(self.hub)
            elif self._hub is not None:
                await self._hub.stop()
                self._hub = None
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return

    async def _handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = self._parse_request(scope)
        if request is None or self.hub.is_stopping:
            await send_problem(send, 404 if request is None else 503)
            return
        if scope["method"] != "GET":
            await send_problem(send, 405)
            return
        try:
            person = await self._authorize(request)
            language = await self._read_language(request)
        except DatabaseError:
            await send_problem(send, 503)
            return
        if person is None:
            await send_problem(send, 404)
            return
        if self.has_too_many_streams(person.pk):
            await send_problem(send, 429)
            return
        person = person._replace(language=language)
        await self.send_stream(request, person, receive, send)

    async def send_stream(
        self,
        request: StreamRequest,
        person: Person,
        receive: Receive,
        send: Send,
        *,
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        """Send a stream to a person who can see its runs, until either side ends it."""
        viewers = self._subscribe(request, person)
        gone = asyncio.create_task(close_on_disconnect(receive, viewers))
        try:
            with suppress(TimeoutError, OSError), self.count_stream(person.pk):
                await send_start(send, 200, [*headers, *HEADERS])
                await self._send_events(request, viewers, send)
        finally:
            for viewer in viewers:
                self.hub.unsubscribe(viewer)
            gone.cancel()

    def has_too_many_streams(self, user_id: int) -> bool:
        return 0 < settings.USER_STREAMS <= self._open_streams[user_id]

    @contextmanager
    def count_stream(self, user_id: int) -> Iterator[None]:
        self._open_streams[user_id] += 1
        try:
            yield
        finally:
            self._open_streams[user_id] -= 1
            if not self._open_streams[user_id]:
                del self._open_streams[user_id]

    def _subscribe(self, request: StreamRequest, person: Person) -> list[AnyViewer]:
        """Subscribe to the runs, and on pages to the updates of the header."""
        if request.run_id is None:
            return [self.hub.subscribe_person(person, in_inbox=request.in_inbox)]
        header = person if request.renderer is PageRenderer else None
        renderer = self.get_renderer(request.renderer, person.language)
        return [
            self.hub.subscribe(renderer, run_id, after=request.after, person=header)
            for run_id in request.run_ids
        ]

    def get_renderer(self, kind: type[AnyRenderer], language: str) -> AnyRenderer:
        """Return the one renderer of a kind: its viewers share what they are sent."""
        return self._renderers.setdefault((kind, language), kind(language))

    async def _send_events(
        self, request: StreamRequest, viewers: list[AnyViewer], send: Send
    ) -> None:
        clock = asyncio.get_running_loop().time
        # Sent at once, so that proxies and clients know the stream is open.
        await send_chunk(send, b"retry: 1000\n\n")
        checked = clock()
        is_turns = request.renderer is TurnRenderer
        messages = merge_messages(viewers) if is_turns else viewers[0].messages()
        async for message in messages:
            if clock() - checked >= SILENCE_SECONDS:
                checked = clock()
                if not await self._is_still_authorized(request):
                    break
            await send_chunk(send, message or KEEPALIVE_COMMENT)
        else:
            if is_turns and not self.hub.is_stopping:
                await send_chunk(send, render_turns_end(request.run_ids))
        await send({"type": "http.response.body", "body": b""})

    async def _read_language(self, request: StreamRequest) -> str:
        """Return the viewer's language now: it may have changed since the last check.

        Streams that open at once share one read.
        """
        key = request.credentials
        task = self._languages.get(key)
        if task is None:
            read = self.hub.run_in_thread(lambda: read_language(key))
            task = self._languages[key] = asyncio.create_task(read)
            task.add_done_callback(lambda _: self._languages.pop(key, None))
        return await asyncio.shield(task)

    async def _is_still_authorized(self, request: StreamRequest) -> bool:
        """Whether the right to watch still holds; a database away takes none away."""
        try:
            return await self._authorize(request) is not None
        except DatabaseError:
            return True

    async def may_still_watch(self, key: Credentials, run_id: int) -> bool:
        """Whether the right to watch a run still holds, as for any other stream."""
        try:
            return await self._authorize_run(key, run_id) is not None
        except DatabaseError:
            return True

    async def _authorize(self, request: StreamRequest) -> Person | None:
        """Return who watches, if each run of the stream may be watched."""
        person = await self._authorize_run(request.credentials, request.run_id)
        for run_id in request.other_run_ids:
            if person is not None:
                person = await self._authorize_run(request.credentials, run_id)
        return person

    async def _authorize_run(
        self, key: Credentials, run_id: int | None
    ) -> Person | None:
        """Return who watches; streams of one key share an answer for a few seconds."""
        now = asyncio.get_running_loop().time()
        place = (key, run_id)
        known = self._checks.get(place)
        if known is None or now - known.at > ACCESS_CACHE_SECONDS:
            self._drop_old_checks(now)
            asked = self.hub.run_in_thread(lambda: authorize_viewer(key, run_id))
            known = AccessCheck(now, asyncio.create_task(asked))
            self._checks[place] = known
        try:
            person = await asyncio.shield(known.person)
        except DatabaseError:
            self._checks.pop(place, None)
            raise
        if person is None:  # permission that is granted meanwhile counts at once
            self._checks.pop(place, None)
        return person

    def _drop_old_checks(self, now: float) -> None:
        """Drop answers that are too old to be used."""
        old = [key for key, one in self._checks.items() if now - one.at > 60]
        for key in old:
            del self._checks[key]

    def _parse_request(self, scope: Scope) -> StreamRequest | None:
        headers = {name.lower(): value for name, value in scope["headers"]}
        after = parse_after(headers, scope.get("query_string", b""))
        key = read_credentials(headers)
        if scope["path"] == PERSON_PATH:
            in_inbox = b"inbox" in scope.get("query_string", b"")
            return StreamRequest(PageRenderer, None, 0, key, in_inbox=in_inbox)
        if found := RUN_PAGE_PATH.match(scope["path"]):
            return StreamRequest(PageRenderer, int(found[1]), after, key)
        if found := TURNS_PATH.match(scope["path"]):
            ids = dict.fromkeys(int(text) for text in found[1].split("-"))
            first, *more = ids
            return StreamRequest(
                TurnRenderer,
                first,
                FROM_THE_START,
                key,
                other_run_ids=tuple(more),
            )
        return None


live_app = LiveApp()


def parse_after(headers: dict[bytes, bytes], query: bytes) -> int:
    """Return after which seq a client wants to know: its last event id or `?after=`."""
    asked = parse_qs(query.decode("latin-1")).get("after", [""])[-1]
    for text in (headers.get(b"last-event-id", b"").decode("latin-1"), asked):
        if (seq := parse_whole_number(text)) is not None:
            return seq
    return FROM_THE_START


async def close_on_disconnect(receive: Receive, viewers: list[AnyViewer]) -> None:
    """Close the viewers when their client goes away."""
    while (await receive())["type"] != "http.disconnect":
        pass
    for viewer in viewers:
        viewer.close()


async def send_chunk(send: Send, body: bytes) -> None:
    """Send a piece of a stream; raise `TimeoutError` if the client takes nothing."""
    async with asyncio.timeout(SEND_TIMEOUT):
        await send({"type": "http.response.body", "body": body, "more_body": True})


async def send_problem(send: Send, status: int) -> None:
    problem = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": REFUSAL_CODES[status],
        "detail": REFUSALS[status],
        "errors": [
            {"field": REFUSAL_FIELDS.get(status, ""), "message": REFUSALS[status]}
        ],
    }
    kind = (b"content-type", b"application/problem+json")
    headers = [kind, *REFUSAL_HEADERS.get(status, ())]
    await send_start(send, status, headers)
    await send({"type": "http.response.body", "body": json.dumps(problem).encode()})


async def send_start(
    send: Send, status: int, headers: Sequence[tuple[bytes, bytes]]
) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})


def stop_streams_on_signals(hub: Hub) -> None:
    """End all streams as soon as the server gets a stop signal.

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
