"""A cheap HTTP client for model servers: one connection, one request at a time.

A model call through httpx costs 0.6 ms of CPU, most of it for what a model server never
needs. This client sends prepared bytes and reads plain responses; address checks,
cancellation, limits and errors are those of the guard, as with httpx.
"""

import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import httpcore
import httpx

from tools.errors import ToolFailed
from tools.net.deadline import Deadline
from tools.net.http_response import MalformedResponse, ResponseReader
from tools.net.sockets import CONNECT_SECONDS, GuardedBackend, shared_ssl_context
from tools.net.trace_context import HEADER, get_outgoing_traceparent
from tools.net.transport import (
    DEFAULT_PORTS,
    iter_limited_body,
    translate_httpcore_errors,
)

KEEPALIVE_SECONDS = 30.0
"""How long an idle connection is kept."""

DRAIN_SECONDS = 0.1
DRAIN_CHUNKS = 4

Origin = tuple[str, str, int]


@dataclass(frozen=True)
class StreamedResponse:
    """A response whose body arrives while `chunks` are read."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    chunks: Iterator[bytes]


class KeepAliveClient:
    """Keeps one connection open; not safe for concurrent threads."""

    def __init__(
        self,
        guard: GuardedBackend,
        *,
        ssl_context: ssl.SSLContext | None,
        timeout: float,
        max_bytes: int,
    ) -> None:
        self._guard = guard
        self._ssl_context = ssl_context
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._stream: httpcore.NetworkStream | None = None
        self._origin: Origin | None = None
        self._used_at = 0.0

    @contextmanager
    def exchange(
        self, url: httpx.URL, head: bytes, body: bytes | None, *, deadline: Deadline
    ) -> Iterator[StreamedResponse]:
        """POST `body` to `url`, or GET it if None; redirects are not followed.

        `head` holds complete header lines, without Host and Content-Length. If the
        server closed the kept connection before it answered, the request is sent once
        more, so it must be safe to repeat. Raises like `guarded_client`.
        """
        self._guard.deadline = deadline
        deadline.check()
        if parent := get_outgoing_traceparent():
            head += f"{HEADER}: {parent}\r\n".encode()
        reader: ResponseReader | None = None
        try:
            with translate_httpcore_errors(), _translate_errors():
                reader = self._send_request(_build_request(url, head, body), url)
            chunks = iter_limited_body(
                _iter_body(reader),
                list(reader.headers.items()),
                url.host,
                self._max_bytes,
            )
            yield StreamedResponse(reader.status, reader.headers, chunks)
            self._drain(chunks)
        finally:
            self._used_at = time.monotonic()
            if reader is None or reader.is_last or not reader.is_whole:
                self.close()

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = None

    def _send_request(self, request: bytes, url: httpx.URL) -> ResponseReader:
        """Return the response to `request`, its head read."""
        kept = self._stream
        stream = self._get_connection(url)
        reader = self._create_reader(stream)
        try:
            stream.write(request, self._timeout)
            reader.read_head()
        except (httpcore.ReadError, httpcore.WriteError, MalformedResponse):
            # A server may close an idle connection just as we write to it.
            if stream is not kept or reader.has_received:
                raise
        else:
            return reader
        self.close()
        stream = self._get_connection(url)
        reader = self._create_reader(stream)
        stream.write(request, self._timeout)
        reader.read_head()
        return reader

    def _create_reader(self, stream: httpcore.NetworkStream) -> ResponseReader:
        return ResponseReader(partial(stream.read, timeout=self._timeout))

    def _get_connection(self, url: httpx.URL) -> httpcore.NetworkStream:
        port = url.port or DEFAULT_PORTS.get(url.scheme, 0)
        host = url.raw_host.decode("ascii")
        origin = (url.scheme, host, port)
        if self._stream is not None:
            is_old = time.monotonic() - self._used_at > KEEPALIVE_SECONDS
            # Readable before a request was sent: the server has closed it.
            if not (
                is_old
                or origin != self._origin
                or self._stream.get_extra_info("is_readable")
            ):
                return self._stream
            self.close()
        seconds = min(self._timeout, CONNECT_SECONDS)
        stream = self._guard.connect_tcp(host, port, seconds)
        if url.scheme == "https":
            context = self._ssl_context or shared_ssl_context()
            stream = stream.start_tls(context, host, seconds)
        self._stream, self._origin = stream, origin
        return stream

    def _drain(self, chunks: Iterator[bytes]) -> None:
        """Read the little that may be left, so that the connection can be kept."""
        self._guard.patience = DRAIN_SECONDS
        try:
            for _ in zip(range(DRAIN_CHUNKS), chunks, strict=False):
                pass
        except (httpx.HTTPError, ToolFailed):
            pass  # the connection is closed; the caller has all it wanted
        finally:
            self._guard.patience = None


def _build_request(url: httpx.URL, head: bytes, body: bytes | None) -> bytes:
    start = b"%b %b HTTP/1.1\r\nHost: %b\r\n" % (
        b"GET" if body is None else b"POST",
        url.raw_path,
        url.netloc,
    )
    if body is None:
        return b"".join((start, head, b"\r\n"))
    return b"".join((start, head, b"Content-Length: %d\r\n\r\n" % len(body), body))


def _iter_body(reader: ResponseReader) -> Iterator[bytes]:
    with translate_httpcore_errors(), _translate_errors():
        yield from reader.iter_body()


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise what is wrong with a response as httpx does."""
    try:
        yield
    except MalformedResponse as error:
        raise httpx.RemoteProtocolError(str(error)) from error
