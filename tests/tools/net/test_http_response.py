"""Malformed responses are refused, quickly."""

import io

import pytest

from tools.net.http_response import (
    MAX_EARLY_HINTS,
    MAX_HEADERS,
    MAX_LINE,
    MalformedResponse,
    ResponseReader,
)

EMPTY = b"Content-Length: 0"
HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


def read(raw: bytes, *, piece: int = 1 << 20) -> tuple[ResponseReader, bytes]:
    """Return the response read from `raw` in pieces of a size, with its body."""
    file = io.BytesIO(raw)
    reader = ResponseReader(lambda size: file.read(min(size, piece)))
    reader.read_head()
    return reader, b"".join(reader.iter_body())


def with_head(*lines: bytes, status: bytes = b"200 OK", version: bytes = b"1.1"):
    return b"\r\n".join((b"HTTP/%b %b" % (version, status), *lines, b"", b""))


def test_reads_status_headers_and_body():
    answer, body = read(
        with_head(b"Content-LENGTH: 2", b"X-Name:\t caf\xe9 \t", b"x-name: b") + b"ok"
    )

    assert (answer.status, body) == (200, b"ok")
    assert answer.headers == {"content-length": "2", "x-name": "café"}
    assert (answer.is_whole, answer.is_last) == (True, False)


@pytest.mark.parametrize("more", [b"more", with_head(b"Content-Length: 4") + b"more"])
@pytest.mark.parametrize("piece", [1, 1 << 20])
def test_bytes_after_the_body_are_dropped_with_their_connection(more, piece):
    raw = with_head(b"Content-Length: 2") + b"ok" + more
    answer, body = read(raw, piece=piece)

    assert (answer.status, body) == (200, b"ok")
    assert answer.is_last is (piece > 1)  # else nothing after the body was read


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_joins_chunks_and_ignores_their_extensions_and_trailers(piece):
    head = with_head(b"Transfer-Encoding: Chunked")
    answer, body = read(
        head + b"A;name=x\r\n0123456789\r\n1 \r\n!\r\n0\r\nX: y\r\n\r\n",
        piece=piece,
    )

    assert body == b"0123456789!"
    assert answer.is_whole


def test_reads_to_the_end_of_the_connection_without_a_length():
    answer, body = read(with_head() + b"x" * 200_000)

    assert (len(body), answer.is_whole, answer.is_last) == (200_000, True, True)


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_some_statuses_have_no_body(status):
    answer, body = read(with_head(b"Content-Length: 9", status=status))

    assert (body, answer.is_whole) == (b"", True)


def test_accepts_bare_line_feeds_and_a_missing_reason():
    assert read(b"HTTP/1.1 200\nA: b\n\nok")[0].headers == {"a": "b"}


@pytest.mark.parametrize(
    ("raw", "is_last"),
    [
        (with_head(b"Connection: Close", EMPTY), True),
        (with_head(b"Connection: keep-alive", EMPTY), False),
        (with_head(EMPTY), False),
        (with_head(), True),
        (with_head(EMPTY, version=b"1.0"), True),
        (with_head(b"Connection: Keep-Alive", EMPTY, version=b"1.0"), False),
        (with_head(b"Content-Length: 5", b"Transfer-Encoding: chunked"), True),
    ],
    ids=["close", "keep", "default", "no length", "1.0", "1.0 keep", "two lengths"],
)
def test_knows_whether_the_connection_can_be_kept(raw, is_last):
    raw += b"0\r\n\r\n" if b"chunked" in raw else b""

    assert read(raw)[0].is_last is is_last


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 200 OK\r\nA: b\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 099 Low\r\n\r\n",
        b"HTTP/1.1 2000 High\r\n\r\n",
        b"HTTP/1.1  200 OK\r\n\r\n",
        b"HTTP/1.1 200 O\0K\r\n\r\n",
        b" HTTP/1.1 200 OK\r\n\r\n",
        with_head(b"no colon"),
        with_head(b": no name"),
        with_head(b"A : b"),
        with_head(b"A: b", b" folded"),
        with_head(b"A: b\rB: c"),
        with_head(b"A: b\0c"),
        with_head("Ä: b".encode()),
        with_head(b"Content-Length: -1"),
        with_head(b"Content-Length: +1"),
        with_head(b"Content-Length: 1_0"),
        with_head(b"Content-Length: 1, 1"),
        with_head("Content-Length: \u00b2".encode("latin-1")),
        with_head(b"Content-Length: " + b"1" * 19),
        with_head(b"Content-Length: 1", b"Content-Length: 2") + b"ok",
        with_head(b"Transfer-Encoding: gzip, chunked"),
        with_head(b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"),
        with_head(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked")
        + b"0\r\n\r\n",
        with_head(b"Transfer-Encoding: chunked") + b"1\na\r\n0\r\n\r\n",
        with_head(b"Transfer-Encoding: chunked") + b"1\r\na\n0\r\n\r\n",
        with_head(b"Transfer-Encoding: chunked") + b"0\r\nContent-Length: 1\r\n\r\n",
        with_head(b"A: b\x0bc"),
        with_head(b"A: b\x0cc"),
        with_head(b"A: b\x7fc"),
        with_head(status=b"200 O\x0bK"),
        with_head(status=b"101 Switching Protocols") + with_head(EMPTY),
        with_head(b"Content-Length: 3") + b"ok",
        with_head(b"Transfer-Encoding: chunked") + b"0x1\r\na\r\n0\r\n\r\n",
        with_head(b"Transfer-Encoding: chunked") + b"-1\r\na\r\n0\r\n\r\n",
        with_head(b"Transfer-Encoding: chunked") + b"1\r\nab\r\n0\r\n\r\n",
        with_head(b"Transfer-Encoding: chunked") + b"f" * 16 + b"\r\nab",
        with_head(b"Transfer-Encoding: chunked") + b"1\r\na\r\n",
        with_head(b"Transfer-Encoding: chunked") + b"0\r\nA\r\n\r\n",
        with_head(b"A: " + b"b" * MAX_LINE),
        with_head(*[b"A: b"] * (MAX_HEADERS + 1)),
        b"HTTP/1.1 200 " + b"O" * MAX_LINE,
        HINT * MAX_EARLY_HINTS + with_head(),
        b"HTTP/1.1 200 " + b"O" * 2 * MAX_LINE + b"\r\n\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
        with_head(b"Upgrade: x", b"Connection: upgrade", status=b"101 Switching"),
        with_head(b"Transfer-Encoding: chunked") + b"1;" + b"x" * 3 * MAX_LINE,
        with_head(b"Transfer-Encoding: chunked")
        + b"0\r\n"
        + b"A: b\r\n" * (MAX_HEADERS + 1)
        + b"\r\n",
    ],
)
@pytest.mark.parametrize("piece", [500, 1 << 20])
def test_refuses_malformed_responses(raw, piece):
    with pytest.raises(MalformedResponse):
        read(raw, piece=piece)


@pytest.mark.parametrize("filler", [b" ", b"\t ", b"a ", b"a:", b"\xff"])
def test_a_long_line_is_refused(filler):
    line = b"A:x" + filler * (MAX_LINE // len(filler) - 10) + b"y\0"

    with pytest.raises(MalformedResponse):
        read(with_head(line))


def test_accepts_headers_and_hints_up_to_the_limits():
    lines = [b"A%d: b" % number for number in range(MAX_HEADERS)]
    hints = HINT * (MAX_EARLY_HINTS - 1)

    assert len(read(hints + with_head(*lines))[0].headers) == MAX_HEADERS
