"""Responses that are sent in the event loop, after their view has returned."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.http import HttpResponse

Headers = list[tuple[bytes, bytes]]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Sender = Callable[[Headers, Receive, Send], Awaitable[None]]


class DeferredResponse(HttpResponse):
    """A response that may take hours: it holds no thread and no database connection.

    `sender` is given the headers of the middleware, and speaks ASGI.
    """

    def __init__(
        self, sender: Sender, *, content_type: str = "application/json"
    ) -> None:
        super().__init__(content_type=content_type)
        self._sender = sender

    async def send_later(self, headers: Headers, receive: Receive, send: Send) -> None:
        """Send it; status, type and length are the sender's."""
        own = (b"content-type", b"content-length")
        kept = [pair for pair in headers if pair[0].lower() not in own]
        await self._sender(kept, receive, send)
