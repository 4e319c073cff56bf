"""An MCP server behind an address: streamable HTTP through the network guard."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import httpx

from tools.credentials import OpenCredential
from tools.errors import ToolFailed
from tools.mcp.errors import (
    NotMcpMessage,
    ServerGone,
    ServerRefused,
    ServerSentTooMuch,
)
from tools.mcp.wire import (
    MAX_BYTES,
    STATELESS_VERSION,
    Message,
    build_server_reply,
    get_rpc_result,
    is_response_to,
    parse_rpc_messages,
)
from tools.net.deadline import Deadline
from tools.net.http_exchange import Request, get_url_origin
from tools.net.http_response import decode_body
from tools.net.netguard import NetPolicy, guarded_client
from tools.net.server_sent_events import StreamTooLarge, parse_server_sent_events

SESSION_TIMEOUT = 600.0
"""Seconds without a byte; a call's own time is the watch's."""

GOODBYE_SECONDS = 1.0
ACCEPT = "application/json, text/event-stream"
EVENT_STREAM = "text/event-stream"


class HttpLink:
    """Posts messages to one address, and reads JSON or an event stream."""

    def __init__(
        self,
        url: str,
        *,
        policy: NetPolicy,
        deadline: Deadline,
        credential: OpenCredential | None = None,
    ) -> None:
        self.where = get_url_origin(url)
        self.version = ""
        self._session = ""
        self._deadline = deadline
        asked = Request(url, "POST", {"accept": ACCEPT})
        self._asked = credential.apply_to(asked) if credential else asked
        self._client = guarded_client(
            policy, deadline, timeout=SESSION_TIMEOUT, max_bytes=MAX_BYTES
        )

    def request(self, message: Message) -> Message:
        """Send a request and return the response to it; raise `ToolFailed`."""
        with self._post(message) as response:
            for one in self._iter_messages(response):
                if is_response_to(one, message["id"]):
                    return one
                if answer := build_server_reply(one):
                    self.notify(answer)
        raise ServerGone(self.where, "it closed the connection before it had answered")

    def notify(self, message: Message) -> None:
        """Send what has no response."""
        with self._post(message):
            pass

    def close(self) -> None:
        """Say goodbye where there is a session, without waiting long for an answer."""
        try:
            if self._session:
                with suppress(httpx.HTTPError, ToolFailed):
                    self._client.delete(
                        self._asked.url,
                        headers=self._build_headers({}),
                        timeout=GOODBYE_SECONDS,
                    )
        finally:
            self._client.close()

    def abandon(self) -> None:
        """Close at once."""
        self._client.close()

    @contextmanager
    def _post(self, message: Message) -> Iterator[httpx.Response]:
        headers = {**self._build_headers(message), "content-type": "application/json"}
        content = json.dumps(message, separators=(",", ":")).encode()
        try:
            with self._client.stream(
                "POST", self._asked.url, headers=headers, content=content
            ) as response:
                if response.status_code >= 300:
                    self._raise_response_error(response)
                session = response.headers.get("mcp-session-id", "")
                if message.get("method") == "initialize" and is_header_safe(session):
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

    def _raise_response_error(self, response: httpx.Response) -> None:
        """Raise the error of the protocol in an answer, or one of its status."""
        response.read()
        messages = list[Message]()
        with suppress(NotMcpMessage):
            messages = parse_rpc_messages(response.content, self.where)
        for one in messages:
            if "error" in one:
                get_rpc_result(one, self.where)
        is_over = response.status_code == 404 and self._session
        kind = response.headers.get("content-type", "")
        told = "the session is over" if is_over else decode_body(response.content, kind)
        raise ServerRefused(self.where, response.status_code, told)

    def _iter_messages(self, response: httpx.Response) -> Iterator[Message]:
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        if kind.lower() == EVENT_STREAM:
            events = parse_server_sent_events(
                response.iter_bytes(), max_bytes=MAX_BYTES
            )
            try:
                for event in events:
                    if event.data.strip():
                        yield from parse_rpc_messages(event.data, self.where)
            except StreamTooLarge:
                raise ServerSentTooMuch(self.where, MAX_BYTES) from None
        elif body := response.read():
            yield from parse_rpc_messages(body, self.where)
        else:
            raise NotMcpMessage(
                self.where, f"it answered {response.status_code} with nothing"
            )

    def _build_headers(self, message: Mapping[str, Any]) -> dict[str, str]:
        headers = dict(self._asked.headers)
        if self._session:
            headers["mcp-session-id"] = self._session
        if self.version:
            headers["mcp-protocol-version"] = self.version
        if self.version == STATELESS_VERSION:
            headers["mcp-method"] = str(message.get("method", ""))
            if name := message.get("params", {}).get("name"):
                headers["mcp-name"] = name
        return headers


def is_header_safe(text: str) -> bool:
    """Whether `text` can be sent back as a header."""
    return bool(text) and text.isascii() and text.isprintable() and len(text) <= 1024
