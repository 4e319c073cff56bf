"""Django's ASGI handler with one thread switch per request."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any

from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.db import close_old_connections
from django.http.response import HttpResponseBase, StreamingHttpResponse
from django.urls import set_script_prefix

from runs.live.deferred import DeferredResponse
from tools.net.client_disconnect import SCOPE_KEY

THREADS = 16
"""Concurrent requests; each may hold a connection, so fewer than the pool has."""

CHUNK_BYTES = 65_536
"""Bytes of a stream that are collected before they are sent."""


class RequestThreads(ThreadPoolExecutor):
    """The threads of requests, and since when all of them are busy with the same."""

    def __init__(self) -> None:
        super().__init__(THREADS, thread_name_prefix="request")
        self._count_lock = threading.Lock()
        self._pending = 0
        self._full_since: float | None = None

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> "Future[Any]":
        job = super().submit(fn, *args, **kwargs)
        with self._count_lock:
            self._pending += 1
            if self._pending >= THREADS and self._full_since is None:
                self._full_since = time.monotonic()
        job.add_done_callback(self._count_end)
        return job

    def _count_end(self, _: "Future[Any]") -> None:
        with self._count_lock:
            self._pending -= 1
            is_full = self._pending >= THREADS
            self._full_since = time.monotonic() if is_full else None

    @property
    def seconds_without_progress(self) -> float:
        """Seconds since a request ended, while every thread is busy; otherwise 0."""
        since = self._full_since
        return 0.0 if since is None else time.monotonic() - since


class ThreadedHandler(ASGIHandler):
    """Run the middleware and view of a request in one thread of a fixed pool.

    Django's own handler switches threads for each middleware, and uses a new thread
    and database connection for each request: 5 ms of CPU.
    """

    def __init__(self) -> None:
        super().__init__()
        self.threads = RequestThreads()

    def load_middleware(self, is_async: bool = False) -> None:
        """Build the synchronous chain, whatever `is_async` says."""
        super().load_middleware(is_async=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise ValueError(f"Django can only handle HTTP, not {scope['type']!r}.")
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        loop = asyncio.get_running_loop()
        watch = DisconnectWatch(loop, receive)
        scope = {**scope, SCOPE_KEY: watch.start}
        response = await loop.run_in_executor(self.threads, self.respond, scope, body)
        watch.stop()
        if isinstance(response, StreamingHttpResponse):
            await self.stream(response, receive, send)
            return
        if isinstance(response, DeferredResponse):
            await response.send_later(encode_headers(response), receive, send)
            return
        await send(build_start_message(response))
        # `respond` has closed it, and its content is in memory.
        await send(build_body_message(response.content, is_last=True))  # type: ignore[attr-defined]  # not streaming

    def respond(self, scope: dict[str, Any], body: IO[bytes]) -> HttpResponseBase:
        """Return the response; everything of the request happens in this thread."""
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=self.__class__, scope=scope)
        try:
            response = self.build_response(scope, body)
        finally:
            body.close()
        if response.streaming:
            close_old_connections()  # each chunk may use another thread's connection
        else:
            response.close()  # gives the connection back, in the thread that used it
        return response

    async def stream(
        self, response: StreamingHttpResponse, receive: Any, send: Any
    ) -> None:
        """Send a response while the view produces it, at the client's pace.

        Django would first collect everything that a synchronous view yields.
        """
        loop = asyncio.get_running_loop()
        leaving = asyncio.create_task(wait_for_disconnect(receive))
        try:
            if response.is_async:
                await self.send_response(response, send)
                return
            await send(build_start_message(response))
            pieces = iter(response)
            while not leaving.done() and (
                piece := await loop.run_in_executor(
                    self.threads, read_next_chunk, pieces
                )
            ):
                await send(build_body_message(piece, is_last=False))
            await send(build_body_message(b"", is_last=True))
        finally:
            leaving.cancel()
            await loop.run_in_executor(self.threads, response.close)

    def build_response(
        self, scope: dict[str, Any], body: IO[bytes]
    ) -> HttpResponseBase:
        """Return the response of the middleware chain, or 400 for a bad request."""
        request, refusal = self.create_request(scope, body)
        response: Any = refusal if request is None else self.get_response(request)
        response._handler_class = self.__class__  # signals name it as their sender
        found: HttpResponseBase = response
        return found


class DisconnectWatch:
    """Waits for the client of a request to leave, once the view asks for that."""

    def __init__(self, loop: asyncio.AbstractEventLoop, receive: Any) -> None:
        self.loop, self.receive = loop, receive
        self.has_left = threading.Event()
        self.task: asyncio.Task[None] | None = None

    def start(self) -> threading.Event:
        """Return an event that is set when the client leaves; for the view's thread."""
        self.loop.call_soon_threadsafe(self._start_task)
        return self.has_left

    def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def _start_task(self) -> None:
        self.task = self.task or self.loop.create_task(self._wait())

    async def _wait(self) -> None:
        await wait_for_disconnect(self.receive)
        self.has_left.set()


def read_next_chunk(pieces: Iterator[bytes]) -> bytes:
    """Return the next `CHUNK_BYTES` or more of a stream; nothing at its end."""
    found, size = [], 0
    try:
        for piece in pieces:
            found.append(piece)
            size += len(piece)
            if size >= CHUNK_BYTES:
                break
    finally:
        close_old_connections()  # the next chunk may be made in another thread
    return b"".join(found)


async def wait_for_disconnect(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def build_start_message(response: HttpResponseBase) -> dict[str, Any]:
    return {
        "type": "http.response.start",
        "status": response.status_code,
        "headers": encode_headers(response),
    }


def build_body_message(body: bytes, *, is_last: bool) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": not is_last}


def encode_headers(response: HttpResponseBase) -> list[tuple[bytes, bytes]]:
    """Return the headers as ASGI wants them, cookies included."""
    headers = [
        (name.encode("ascii"), value.encode("latin1"))
        for name, value in response.items()
    ]
    cookies = [
        (b"Set-Cookie", cookie.OutputString().encode("ascii"))
        for cookie in response.cookies.values()
    ]
    return headers + cookies
