"""Guarded exchanges: redirects are followed safely, and answers have a limit."""

import ssl
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore
import httpx

from tools.net.netpolicy import AddressRefused, ResponseRefused, ResponseTooLarge
from tools.net.sockets import GuardedBackend
from tools.net.trace_context import HEADER, get_outgoing_traceparent
from tools.net.web_address import parse_web_url

PLAIN_HEADERS = frozenset(
    (b"accept", b"accept-encoding", b"accept-language", b"user-agent")
)
"""What another host gets to see when an answer sends us there."""

BODY_HEADERS = (b"content-", b"transfer-encoding")
ENCODING_HEADERS = (b"content-encoding", b"content-length")
DEFAULT_PORTS = {"http": 80, "https": 443}
REDIRECTS = (301, 302, 303, 307, 308)
CHUNK_SIZE = 64 * 1024
"""Bytes unpacked at once."""
GZIP_START = b"\x1f\x8b"

HTTPCORE_ERRORS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
)


class GuardedTransport(httpx.BaseTransport):
    """Sends over guarded connections, follows redirects, and limits answers."""

    def __init__(
        self,
        guard: GuardedBackend,
        *,
        ssl_context: ssl.SSLContext,
        max_bytes: int,
        redirects: int,
    ) -> None:
        self._max_bytes = max_bytes
        self._redirects = redirects
        self._pool = httpcore.ConnectionPool(
            ssl_context=ssl_context,
            network_backend=guard,
            max_connections=10,
            max_keepalive_connections=4,
            keepalive_expiry=30.0,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer to `request`, or to the last of its redirects."""
        if (parent := get_outgoing_traceparent()) and HEADER not in request.headers:
            request.headers[HEADER] = parent
        for _ in range(self._redirects + 1):
            response = self._send(request)
            location = response.headers.get("location")
            is_redirect = response.status_code in REDIRECTS and location is not None
            if not is_redirect or not self._redirects:
                response.extensions["final_url"] = str(request.url)
                return response
            response.close()
            request = build_redirect(request, response.status_code, location)
        raise ResponseRefused(
            f"{request.url.host!r} redirects more than {self._redirects} times."
        )

    def close(self) -> None:
        self._pool.close()

    def _send(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        if url.scheme not in ("http", "https") or not url.host:
            raise AddressRefused(
                str(url.copy_with(query=None)), "it is not an http or https address"
            )
        with translate_httpcore_errors():
            answer = self._pool.handle_request(
                httpcore.Request(
                    method=request.method,
                    url=httpcore.URL(
                        scheme=url.raw_scheme,
                        host=url.raw_host,
                        port=url.port,
                        target=url.raw_path,
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        message = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in answer.headers
        ]
        try:
            chunks = iter_limited_body(
                answer.iter_stream(), message, url.host, self._max_bytes
            )
        except ResponseRefused:
            answer.close()
            raise
        headers = answer.headers  # bytes: httpx takes text of ASCII only
        if get_content_encoding(message):  # httpx must not unpack it again
            headers = [one for one in headers if one[0].lower() not in ENCODING_HEADERS]
        return httpx.Response(
            answer.status,
            headers=headers,
            stream=LimitedBody(answer, chunks),
            extensions=answer.extensions,
        )


def build_redirect(request: httpx.Request, status: int, location: str) -> httpx.Request:
    """Return the request a redirect asks for; another host gets no secrets, no body."""
    try:
        url = parse_web_url(request.url.join(location))
    except httpx.InvalidURL as error:
        raise ResponseRefused(
            f"{request.url.host!r} redirects to something that is not an address."
        ) from error
    method = request.method
    becomes_get = status == 303 or (status in (301, 302) and method == "POST")
    if becomes_get and method != "HEAD":
        method = "GET"
    keeps_body = method == request.method
    headers = [
        (name, value)
        for name, value in request.headers.raw
        if name.lower() != b"host"
        and (keeps_body or not name.lower().startswith(BODY_HEADERS))
    ]
    if not _is_same_origin(request.url, url):
        if keeps_body and request.headers.get("content-length", "0") != "0":
            raise ResponseRefused(
                f"{request.url.host!r} redirects a request with its content to "
                f"{url.host!r}, another host."
            )
        headers = [one for one in headers if one[0].lower() in PLAIN_HEADERS]
    return httpx.Request(
        method,
        url,
        headers=[(b"host", url.netloc), *headers],
        stream=request.stream if keeps_body else None,
        extensions=request.extensions,
    )


def _is_same_origin(here: httpx.URL, there: httpx.URL) -> bool:
    """Whether `there` is the same server, or the same host moving up to TLS."""
    if here.host != there.host:
        return False
    ports = [one.port or DEFAULT_PORTS.get(one.scheme) for one in (here, there)]
    if here.scheme == there.scheme:
        return ports[0] == ports[1]
    return ports == [80, 443]


class LimitedBody(httpx.SyncByteStream):
    """The body of an answer, unpacked, up to a number of bytes."""

    def __init__(self, answer: httpcore.Response, chunks: Iterator[bytes]) -> None:
        self._answer = answer
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        with translate_httpcore_errors():
            yield from self._chunks

    def close(self) -> None:
        """Give the connection back."""
        self._answer.close()


def get_content_encoding(headers: Iterable[tuple[str, str]]) -> str:
    """Return how a body is packed; empty if it is not."""
    for name, value in headers:
        if name.lower() == "content-encoding":
            word = value.strip().lower()
            return "" if word == "identity" else word
    return ""


def iter_limited_body(
    chunks: Iterable[bytes], headers: list[tuple[str, str]], host: str, limit: int
) -> Iterator[bytes]:
    """Return the unpacked body; raise `AnswerRefused` over `limit` bytes.

    At once where the headers already say that it cannot be taken in.
    """
    packing = get_content_encoding(headers)
    if packing not in ("", "gzip", "x-gzip", "deflate"):
        raise ResponseRefused(
            f"{host!r} answered in the encoding {packing!r}; nobody asked for it."
        )
    for name, value in headers:
        is_length = name.lower() == "content-length" and value.isdigit()
        if is_length and (len(value) > 18 or int(value) > limit):
            raise ResponseTooLarge(host, limit)
    limited = _limit_size(chunks, host, limit)
    return (
        _limit_size(_decode_chunks(limited, host), host, limit) if packing else limited
    )


def _limit_size(chunks: Iterable[bytes], host: str, limit: int) -> Iterator[bytes]:
    count = 0
    for chunk in chunks:
        count += len(chunk)
        if count > limit:
            raise ResponseTooLarge(host, limit)
        yield chunk


def _decode_chunks(chunks: Iterable[bytes], host: str) -> Iterator[bytes]:
    """Yield the content in pieces of at most 64 KiB, so that no bomb goes off."""
    try:
        yield from _inflate(chunks)
    except zlib.error as error:
        raise ResponseRefused(f"The answer of {host!r} cannot be unpacked.") from error


def _inflate(chunks: Iterable[bytes]) -> Iterator[bytes]:
    decoder: Any = None
    start = b""  # the first bytes of a member say what it is, once there are two
    for chunk in chunks:
        rest, start = start + chunk, b""
        while rest:
            if decoder is None or decoder.eof:
                if len(rest) < 2:
                    start = rest
                    break
                if decoder is not None and not rest.startswith(GZIP_START):
                    break  # padding after the last member
                decoder = _open_member(rest)
            yield decoder.decompress(rest, CHUNK_SIZE)
            rest = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
    if decoder is None:
        if start:
            raise zlib.error("incomplete")
        return
    yield decoder.flush()
    if not decoder.eof:
        raise zlib.error("incomplete")


def _open_member(start: bytes) -> Any:
    """Return a decoder; some servers send deflate without a header."""
    has_header = start.startswith((GZIP_START, b"\x78"))
    return zlib.decompressobj(47 if has_header else -15)


@contextmanager
def translate_httpcore_errors() -> Iterator[None]:
    """Raise httpcore's errors under httpx's names, which are the same."""
    try:
        yield
    except HTTPCORE_ERRORS as error:
        raise getattr(httpx, type(error).__name__)(str(error)) from error
