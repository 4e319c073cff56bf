"""An MCP server behind an address: streamable HTTP through the network guard."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import httpx

from tools.credentials import OpenCredential
from tools.errors import Interrupted, ToolFailed
from tools.mcp.errors import (
    NotMcpMessage,
    OldTransport,
    ServerGone,
    ServerRefused,
    ServerSentTooMuch,
    SessionExpired,
    SignInNeeded,
)
from tools.mcp.wire import (
    MAX_BYTES,
    STATELESS_VERSION,
    Message,
    Receiver,
    build_server_reply,
    get_rpc_result,
    is_response_to,
    parse_rpc_messages,
)
from tools.net.deadline import Deadline
from tools.net.http_exchange import Request, get_url_origin
from tools.net.http_response import decode_body
from tools.net.netguard import (
    GuardedClient,
    NetPolicy,
    ResponseTooLarge,
    guarded_client,
)
from tools.net.server_sent_events import StreamTooLarge, parse_server_sent_events

SESSION_TIMEOUT = 600.0
"""Seconds without a byte; a call's own time is its deadline's."""

GOODBYE_SECONDS = 1.0
LISTEN_SECONDS = 0.5
"""How long a session waits for the stream of what the server sends by itself."""

RECONNECT_SECONDS = (1.0, 30.0)
"""Shortest and longest pause before that stream is opened again."""

DRAIN_SECONDS = 0.1
"""How long to wait for the end of an event stream, to keep the connection."""

PROBE_SECONDS = 3.0
ACCEPT = "application/json, text/event-stream"
EVENT_STREAM = "text/event-stream"


class Exchange(NamedTuple):
    response: httpx.Response
    client: GuardedClient


class HttpLink:
    """Posts messages to one address, and reads JSON or an event stream."""

    def __init__(
        self,
        url: str,
        *,
        policy: NetPolicy,
        credential: OpenCredential | None = None,
    ) -> None:
        self.where = get_url_origin(url)
        self.version = ""
        self.receive: Receiver = build_server_reply
        self._session = ""
        self._policy = policy
        self._url = url
        self.set_credential(credential)
        self._idle: list[GuardedClient] = []
        self._closed = threading.Event()
        self._listener: threading.Thread | None = None

    def set_credential(self, credential: OpenCredential | None) -> None:
        """Use another secret from the next request on."""
        asked = Request(self._url, "POST")
        self._asked = credential.apply_to(asked) if credential else asked
        self._is_signed_in = credential is not None

    def request(self, message: Message, deadline: Deadline) -> Message:
        """Send a request and return the response to it; raise `ToolFailed`."""
        with self._post(message, deadline) as (response, client):
            messages = self._iter_messages(response)
            for one in messages:
                if is_response_to(one, message["id"]):
                    drain(messages, client)
                    return one
                if answer := self.receive(one):
                    self.notify(answer, deadline)
        raise ServerGone(self.where, "it closed the connection before it had answered")

    def notify(self, message: Message, deadline: Deadline) -> None:
        """Send what has no response."""
        with self._post(message, deadline):
            pass

    def listen(self, deadline: Deadline) -> None:
        """Open the stream of what the server sends by itself, if it has a session.

        Many servers have no such stream; nothing is raised.
        """
        if not self._session or self._listener is not None:
            return
        opened = threading.Event()
        self._listener = threading.Thread(
            target=self._listen, args=(opened,), name="mcp-listen", daemon=True
        )
        self._listener.start()
        opened.wait(deadline.next_wait(LISTEN_SECONDS))

    def is_usable(self) -> bool:
        """Whether it is open; the server says with 404 that a session is over."""
        return not self._closed.is_set()

    def close(self) -> None:
        """End the session, if there is one, without waiting long for an answer."""
        try:
            if self._session:
                goodbye = Deadline(seconds=GOODBYE_SECONDS)
                with (
                    suppress(httpx.HTTPError, ToolFailed, Interrupted),
                    self._lease(goodbye) as client,
                ):
                    client.delete(self._asked.url, headers=self._build_headers({}))
        finally:
            self.abandon()

    def abandon(self) -> None:
        self._closed.set()
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _lease(self, deadline: Deadline) -> Iterator[GuardedClient]:
        """Give a client of this thread's own; it is kept if the exchange went well."""
        try:
            client = self._idle.pop()
        except IndexError:
            client = guarded_client(
                self._policy, deadline, timeout=SESSION_TIMEOUT, max_bytes=MAX_BYTES
            )
        client.guard.deadline = deadline
        try:
            yield client
        except BaseException:
            client.close()
            raise
        if self._closed.is_set():
            client.close()
        else:
            self._idle.append(client)

    @contextmanager
    def _post(self, message: Message, deadline: Deadline) -> Iterator[Exchange]:
        headers = {**self._build_headers(message), "content-type": "application/json"}
        content = json.dumps(message, separators=(",", ":")).encode()
        with (
            self._translate_errors(),
            self._lease(deadline) as client,
            client.stream(
                "POST", self._asked.url, headers=headers, content=content
            ) as response,
        ):
            if response.status_code >= 300:
                self._raise_response_error(response, message, client)
            session = response.headers.get("mcp-session-id", "")
            if message.get("method") == "initialize" and is_header_safe(session):
                self._session = session
            yield Exchange(response, client)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except httpx.ConnectTimeout:
            raise ServerGone(self.where, "no server answers there") from None
        except httpx.ConnectError as error:
            why = f"no connection ({error or 'refused'})"
            raise ServerGone(self.where, why) from None
        except (httpx.HTTPError, UnicodeError) as error:
            why = f"the exchange broke ({str(error) or type(error).__name__})"
            raise ServerGone(self.where, why) from None

    def _raise_response_error(
        self, response: httpx.Response, message: Message, client: GuardedClient
    ) -> None:
        """Raise what the status says, or the error of the protocol in the body."""
        response.read()
        status = response.status_code
        messages = list[Message]()
        with suppress(NotMcpMessage):
            messages = parse_rpc_messages(response.content, self.where)
        text = find_error_text(messages) or decode_body(
            response.content, response.headers.get("content-type", "")
        )
        is_unknown = status == 400 and "session" in text.lower()
        if self._session and (status == 404 or is_unknown):
            raise SessionExpired(self.where)
        if status in (401, 403):
            raise SignInNeeded(
                self.where, status, text, is_signed_in=self._is_signed_in
            )
        for one in messages:
            if isinstance(one.get("error"), dict):
                get_rpc_result(one, self.where)
        is_hello = message.get("method") == "initialize"
        if is_hello and status in (400, 404, 405) and self._is_old_transport():
            raise OldTransport(self.where)
        raise ServerRefused(self.where, status, text)

    def _is_old_transport(self) -> bool:
        """Whether a GET begins the event stream of the transport of 2024."""
        headers = {**self._asked.headers, "accept": EVENT_STREAM}
        with (
            suppress(httpx.HTTPError, ToolFailed, Interrupted, StreamTooLarge),
            self._lease(Deadline(seconds=PROBE_SECONDS)) as client,
            client.stream("GET", self._asked.url, headers=headers) as response,
        ):
            if is_event_stream(response):
                events = parse_server_sent_events(response.iter_bytes())
                return next((event.name == "endpoint" for event in events), False)
        return False

    def _iter_messages(self, response: httpx.Response) -> Iterator[Message]:
        if is_event_stream(response):
            yield from self._iter_events(response)
        elif body := response.read():
            yield from parse_rpc_messages(body, self.where)
        else:
            raise NotMcpMessage(
                self.where, f"it answered {response.status_code} with nothing"
            )

    def _iter_events(self, response: httpx.Response) -> Iterator[Message]:
        events = parse_server_sent_events(response.iter_bytes(), max_bytes=MAX_BYTES)
        try:
            for event in events:
                if event.data.strip():
                    yield from parse_rpc_messages(event.data, self.where)
        except StreamTooLarge:
            raise ServerSentTooMuch(self.where, MAX_BYTES) from None

    def _listen(self, opened: threading.Event) -> None:
        """Read what the server sends by itself until the link is closed."""
        pause = RECONNECT_SECONDS[0]
        deadline = Deadline(flag=self._closed)
        with (
            suppress(Interrupted, ToolFailed, httpx.HTTPError),
            self._lease(deadline) as client,
        ):
            while not self._closed.is_set():
                headers = {**self._build_headers({}), "accept": EVENT_STREAM}
                with client.stream("GET", self._asked.url, headers=headers) as response:
                    opened.set()
                    if response.status_code != 200 or not is_event_stream(response):
                        return
                    with suppress(httpx.HTTPError, ResponseTooLarge, ServerSentTooMuch):
                        for one in self._iter_events(response):
                            pause = RECONNECT_SECONDS[0]
                            if answer := self.receive(one):
                                self.notify(answer, deadline)
                self._closed.wait(pause)
                pause = min(2 * pause, RECONNECT_SECONDS[1])
        opened.set()

    def _build_headers(self, message: Mapping[str, Any]) -> dict[str, str]:
        headers = {**self._asked.headers, "accept": ACCEPT}
        if self._session:
            headers["mcp-session-id"] = self._session
        if self.version:
            headers["mcp-protocol-version"] = self.version
        if self.version == STATELESS_VERSION:
            headers["mcp-method"] = str(message.get("method", ""))
            if name := message.get("params", {}).get("name"):
                headers["mcp-name"] = name
        return headers


def drain(messages: Iterator[Message], client: GuardedClient) -> None:
    """Read the little that may follow an answer, so that the connection is kept."""
    client.guard.patience = DRAIN_SECONDS
    try:
        next(messages, None)
    except (httpx.HTTPError, ToolFailed):
        pass  # the connection is closed; the caller has all it wanted
    finally:
        client.guard.patience = None


def is_event_stream(response: httpx.Response) -> bool:
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    return bool(kind.lower() == EVENT_STREAM)


def find_error_text(messages: list[Message]) -> str:
    """Return the words of an error, of the protocol or of OAuth."""
    for one in messages:
        match one.get("error"):
            case {"message": str(text)}:
                return text
            case str(text):
                return str(one.get("error_description") or text)
    return ""


def is_header_safe(text: str) -> bool:
    """Whether `text` can be sent back as a header."""
    return bool(text) and text.isascii() and text.isprintable() and len(text) <= 1024
