"""An MCP server behind an address: streamable HTTP through the network guard."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import httpx

from tools.credentials import Opened
from tools.errors import ToolFailed
from tools.exchange import Asked, place_of
from tools.http_answer import text_of_body
from tools.mcp.errors import NotMcp, ServerGone, ServerRefused
from tools.mcp.wire import (
    MAX_BYTES,
    STATELESS,
    Lines,
    Message,
    is_response_to,
    messages_in,
    reply_to,
    result_of,
)
from tools.netguard import NetPolicy, guarded_client
from tools.watch import Watch

PATIENCE = 600.0
"""Seconds without a byte; a call's own time is the watch's."""

GOODBYE_SECONDS = 1.0
ACCEPT = "application/json, text/event-stream"
STREAM = "text/event-stream"


class HttpLink:
    """Posts messages to one address, and reads JSON or an event stream."""

    def __init__(
        self,
        url: str,
        *,
        policy: NetPolicy,
        watch: Watch,
        credential: Opened | None = None,
    ) -> None:
        self.where = place_of(url)
        self.version = ""
        self._session = ""
        self._watch = watch
        asked = Asked(url, "POST", {"accept": ACCEPT})
        self._asked = credential.added_to(asked) if credential else asked
        self._client = guarded_client(
            policy, watch, timeout=PATIENCE, max_bytes=MAX_BYTES
        )

    def ask(self, message: Message) -> Message:
        """Send a request and return the response to it; raise `ToolFailed`."""
        with self._posted(message) as response:
            for one in self._messages(response):
                if is_response_to(one, message["id"]):
                    return one
                if answer := reply_to(one):
                    self.tell(answer)
        raise ServerGone(self.where, "it closed the connection before it had answered")

    def tell(self, message: Message) -> None:
        """Send what has no response."""
        with self._posted(message):
            pass

    def close(self) -> None:
        """Say goodbye where there is a session, without waiting long for an answer."""
        try:
            if self._session:
                with suppress(httpx.HTTPError, ToolFailed):
                    self._client.delete(
                        self._asked.url,
                        headers=self._headers({}),
                        timeout=GOODBYE_SECONDS,
                    )
        finally:
            self._client.close()

    def abandon(self) -> None:
        """Close at once."""
        self._client.close()

    @contextmanager
    def _posted(self, message: Message) -> Iterator[httpx.Response]:
        headers = {**self._headers(message), "content-type": "application/json"}
        content = json.dumps(message, separators=(",", ":")).encode()
        try:
            with self._client.stream(
                "POST", self._asked.url, headers=headers, content=content
            ) as response:
                if response.status_code >= 300:
                    self._refuse(response)
                session = response.headers.get("mcp-session-id", "")
                if message.get("method") == "initialize" and is_header(session):
                    self._session = session
                yield response
        except httpx.ConnectTimeout:
            raise ServerGone(self.where, "no server answers there") from None
        except httpx.ConnectError as error:
            why = f"no connection ({error or 'refused'})"
            raise ServerGone(self.where, why) from None
        except (httpx.HTTPError, UnicodeError) as error:
            why = f"the exchange broke ({str(error) or type(error).__name__})"
            raise ServerGone(self.where, why) from None

    def _refuse(self, response: httpx.Response) -> None:
        """Raise the error of the protocol in an answer, or one of its status."""
        response.read()
        messages = list[Message]()
        with suppress(NotMcp):
            messages = messages_in(response.content, self.where)
        for one in messages:
            if "error" in one:
                result_of(one, self.where)
        is_over = response.status_code == 404 and self._session
        kind = response.headers.get("content-type", "")
        told = (
            "the session is over" if is_over else text_of_body(response.content, kind)
        )
        raise ServerRefused(self.where, response.status_code, told)

    def _messages(self, response: httpx.Response) -> Iterator[Message]:
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        if kind.lower() == STREAM:
            for text in events_in(response.iter_bytes(), self.where):
                yield from messages_in(text, self.where)
        elif body := response.read():
            yield from messages_in(body, self.where)
        else:
            raise NotMcp(self.where, f"it answered {response.status_code} with nothing")

    def _headers(self, message: Mapping[str, Any]) -> dict[str, str]:
        headers = dict(self._asked.headers)
        if self._session:
            headers["mcp-session-id"] = self._session
        if self.version:
            headers["mcp-protocol-version"] = self.version
        if self.version == STATELESS:
            headers["mcp-method"] = str(message.get("method", ""))
            if name := message.get("params", {}).get("name"):
                headers["mcp-name"] = name
        return headers


def is_header(text: str) -> bool:
    """Whether `text` can be sent back as a header."""
    return bool(text) and text.isascii() and text.isprintable() and len(text) <= 1024


def events_in(chunks: Iterator[bytes], where: str) -> Iterator[bytes]:
    """Yield the data of each event of a stream; comments and names are left out."""
    lines, data = Lines(where), list[bytes]()
    for chunk in chunks:
        for line in lines.feed(chunk):
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line and data:
                text = b"\n".join(data)
                data.clear()
                if text.strip():
                    yield text
