"""Django's ASGI handler with one hop a request: into a thread and back."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.db import close_old_connections
from django.http.response import HttpResponseBase, StreamingHttpResponse
from django.urls import set_script_prefix

THREADS = 16
"""Requests at once; each may take a connection, so fewer than the pool holds."""

PIECE = 65_536
"""Bytes of a stream that are made before they are sent."""


class ThreadedHandler(ASGIHandler):
    """Runs middleware and view of a request in one thread of a fixed pool.

    Django's own handler crosses between loop and thread for each middleware, and in
    a new thread, with a new database connection, for each request: 5 ms of CPU.
    """

    def __init__(self) -> None:
        super().__init__()
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="request")

    def load_middleware(self, is_async: bool = False) -> None:
        """Build the synchronous chain, whatever is asked for."""
        super().load_middleware(is_async=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one HTTP request."""
        if scope["type"] != "http":
            raise ValueError(f"Django can only handle HTTP, not {scope['type']!r}.")
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        loop = asyncio.get_running_loop()
        response = await loop.run_in_executor(self.threads, self.answer, scope, body)
        if isinstance(response, StreamingHttpResponse):
            await self.stream(response, receive, send)
            return
        await send(start_of(response))
        # It is closed already: what `answer` returns holds nothing but its bytes.
        await send(body_of(response.content, is_last=True))  # type: ignore[attr-defined]  # not streaming

    def answer(self, scope: dict[str, Any], body: IO[bytes]) -> HttpResponseBase:
        """Return the response, the thread having done all that belongs to it."""
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=self.__class__, scope=scope)
        try:
            response = self.response_to(scope, body)
        finally:
            body.close()
        if response.streaming:
            close_old_connections()  # each piece has a thread, and a connection, anew
        else:
            response.close()  # the connection goes back to its pool, in its own thread
        return response

    async def stream(
        self, response: StreamingHttpResponse, receive: Any, send: Any
    ) -> None:
        """Send a response as it is made, and make no more of it than is taken.

        Django would first collect all that a synchronous view yields.
        """
        loop = asyncio.get_running_loop()
        leaving = asyncio.create_task(left(receive))
        try:
            if response.is_async:
                await self.send_response(response, send)
                return
            await send(start_of(response))
            pieces = iter(response)
            while not leaving.done() and (
                piece := await loop.run_in_executor(self.threads, next_of, pieces)
            ):
                await send(body_of(piece, is_last=False))
            await send(body_of(b"", is_last=True))
        finally:
            leaving.cancel()
            await loop.run_in_executor(self.threads, response.close)

    def response_to(self, scope: dict[str, Any], body: IO[bytes]) -> HttpResponseBase:
        """Return what middleware and view say, or why the request cannot be read."""
        request, refusal = self.create_request(scope, body)
        response: Any = refusal if request is None else self.get_response(request)
        response._handler_class = self.__class__  # signals name it as their sender
        found: HttpResponseBase = response
        return found


def next_of(pieces: Iterator[bytes]) -> bytes:
    """Return what comes next of a stream, `PIECE` bytes or more; nothing at its end."""
    found, size = [], 0
    try:
        for piece in pieces:
            found.append(piece)
            size += len(piece)
            if size >= PIECE:
                break
    finally:
        close_old_connections()  # the next piece may be made in another thread
    return b"".join(found)


async def left(receive: Any) -> None:
    """Wait until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def start_of(response: HttpResponseBase) -> dict[str, Any]:
    """Return the message that begins an answer."""
    return {
        "type": "http.response.start",
        "status": response.status_code,
        "headers": headers_of(response),
    }


def body_of(body: bytes, *, is_last: bool) -> dict[str, Any]:
    """Return a message with a part of an answer."""
    return {"type": "http.response.body", "body": body, "more_body": not is_last}


def headers_of(response: HttpResponseBase) -> list[tuple[bytes, bytes]]:
    """Return the headers as ASGI takes them, cookies among them."""
    headers = [
        (name.encode("ascii"), value.encode("latin1"))
        for name, value in response.items()
    ]
    cookies = [
        (b"Set-Cookie", cookie.OutputString().encode("ascii"))
        for cookie in response.cookies.values()
    ]
    return headers + cookies
