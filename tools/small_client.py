"""`SmallClient`: one request after the other to one kind of server, at little cost.

A model call through httpx costs 0.6 ms of CPU, most of it for what a model server never
needs. This client sends bytes made beforehand and reads plain answers; address checks,
slices, limits and errors are the guard's, as with httpx.
"""

import io
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import httpcore
import httpx

from tools.errors import ToolFailed
from tools.http_answer import PIECE, BadAnswer, HttpAnswer, read_answer
from tools.sockets import CONNECT_SECONDS, Guard, shared_ssl_context
from tools.transport import DEFAULT_PORTS, as_httpx, body_of_answer
from tools.watch import Watch

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

KEPT_SECONDS = 30.0
"""How long an unused connection is kept."""

DRAIN_SECONDS = 0.1
DRAIN_PIECES = 4

Origin = tuple[str, str, int]


@dataclass(frozen=True)
class SmallAnswer:
    """An answer; its body arrives while `chunks` are read."""

    status: int
    headers: Mapping[str, str]
    """Names in small letters."""
    chunks: Iterator[bytes]


class SmallClient:
    """Keeps one connection; for one thread at a time."""

    def __init__(
        self,
        guard: Guard,
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
        self, url: httpx.URL, head: bytes, body: bytes | None, *, watch: Watch
    ) -> Iterator[SmallAnswer]:
        """POST `body` to `url`, or GET it, and give the answer; redirects are answers.

        `head` are header lines ready to send, without Host and Content-Length. Where a
        server has closed the kept connection before it answered, the request is sent
        once more, so it must be one that may arrive twice. Raises like
        `guarded_client`.
        """
        self._guard.watch = watch
        watch.check()
        answer: HttpAnswer | None = None
        try:
            with as_httpx(), _told():
                answer, file = self._answer_to(_request(url, head, body), url)
            chunks = body_of_answer(
                _pieces(answer, file),
                list(answer.headers.items()),
                url.host,
                self._max_bytes,
            )
            yield SmallAnswer(answer.status, answer.headers, chunks)
            self._drain(chunks)
        finally:
            self._keep_or_close(answer)

    def close(self) -> None:
        """Close the connection."""
        if self._stream is not None:
            self._stream.close()
        self._stream = None

    def _answer_to(self, request: bytes, url: httpx.URL) -> "_Begun":
        """Return the answer to `request`, its body still to come."""
        kept = self._stream
        stream = self._connected(url)
        receiver = _Receiver(stream, self._timeout)
        try:
            return _begun(stream, receiver, request)
        except (httpcore.ReadError, httpcore.WriteError, BadAnswer):
            # Its end can come while we write: then it is no failure of the server.
            if stream is not kept or receiver.has_come:
                raise
        self.close()
        stream = self._connected(url)
        return _begun(stream, _Receiver(stream, self._timeout), request)

    def _connected(self, url: httpx.URL) -> httpcore.NetworkStream:
        port = url.port or DEFAULT_PORTS.get(url.scheme, 0)
        host = url.raw_host.decode("ascii")
        origin = (url.scheme, host, port)
        if self._stream is not None:
            is_old = time.monotonic() - self._used_at > KEPT_SECONDS
            # What can be read before we asked is the end of the connection.
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
        """Read what little may be left of the answer, so that its connection lives."""
        self._guard.patience = DRAIN_SECONDS
        try:
            for _ in zip(range(DRAIN_PIECES), chunks, strict=False):
                pass
        except (httpx.HTTPError, ToolFailed):
            pass  # the connection is closed, and the answer was already complete
        finally:
            self._guard.patience = None

    def _keep_or_close(self, answer: HttpAnswer | None) -> None:
        self._used_at = time.monotonic()
        if answer is None or answer.is_last or not answer.is_whole:
            self.close()


def _request(url: httpx.URL, head: bytes, body: bytes | None) -> bytes:
    start = b"%b %b HTTP/1.1\r\nHost: %b\r\n" % (
        b"GET" if body is None else b"POST",
        url.raw_path,
        url.netloc,
    )
    if body is None:
        return b"".join((start, head, b"\r\n"))
    return b"".join((start, head, b"Content-Length: %d\r\n\r\n" % len(body), body))


class _Begun(NamedTuple):
    """An answer, and where its body comes from."""

    answer: HttpAnswer
    file: io.BufferedIOBase


def _begun(
    stream: httpcore.NetworkStream, receiver: "_Receiver", request: bytes
) -> _Begun:
    stream.write(request, receiver.timeout)
    file = io.BufferedReader(receiver, PIECE)
    return _Begun(read_answer(file), file)


def _pieces(answer: HttpAnswer, file: io.BufferedIOBase) -> Iterator[bytes]:
    with as_httpx(), _told():
        yield from answer.body(file)


@contextmanager
def _told() -> Iterator[None]:
    """Raise what is wrong with an answer as httpx does."""
    try:
        yield
    except BadAnswer as error:
        raise httpx.RemoteProtocolError(str(error)) from error


class _Receiver(io.RawIOBase):
    """The receiving end of a guarded stream, as a file."""

    def __init__(self, stream: httpcore.NetworkStream, timeout: float) -> None:
        self._stream = stream
        self.timeout = timeout
        self.has_come = False
        """Whether any byte of an answer has arrived."""

    def readable(self) -> bool:
        """Say yes."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Fill `buffer` with what comes next."""
        view: Any = memoryview(buffer)
        piece = self._stream.read(len(view), self.timeout)
        view[: len(piece)] = piece
        self.has_come = self.has_come or bool(piece)
        return len(piece)
