"""Tests of reading an answer: what is not in order is refused, soon and for good."""

import io
import time

import pytest

from tests.timing import assert_quick, tries
from tools.http_answer import (
    LONGEST_LINE,
    MOST_HEADERS,
    MOST_HINTS,
    BadAnswer,
    HttpAnswer,
    read_answer,
)

HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


def read(raw: bytes) -> tuple[HttpAnswer, bytes]:
    """Return what is read of `raw`, with its body."""
    file = io.BufferedReader(io.BytesIO(raw))  # type: ignore[arg-type]  # raw enough
    answer = read_answer(file)
    return answer, b"".join(answer.body(file))


def with_head(*lines: bytes, status: bytes = b"200 OK", version: bytes = b"1.1"):
    return b"\r\n".join((b"HTTP/%b %b" % (version, status), *lines, b"", b""))


def test_reads_status_headers_and_body():
    answer, body = read(
        with_head(b"Content-LENGTH: 2", b"X-Name:\t caf\xe9 \t", b"x-name: b")
        + b"okmore"
    )

    assert (answer.status, body) == (200, b"ok")
    assert answer.headers == {"content-length": "2", "x-name": "café"}
    assert (answer.is_whole, answer.is_last) == (True, False)


def test_joins_chunks_and_passes_over_what_is_said_about_them():
    head = with_head(b"Transfer-Encoding: Chunked")
    answer, body = read(
        head + b"A;name=x\r\n0123456789\r\n1 \r\n!\r\n0\r\nX: y\r\n\r\n"
    )

    assert body == b"0123456789!"
    assert answer.is_whole


def test_reads_to_the_end_where_nothing_else_says_how_much():
    answer, body = read(with_head() + b"x" * 200_000)

    assert (len(body), answer.length) == (200_000, None)


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_some_answers_have_no_body(status):
    answer, body = read(with_head(b"Content-Length: 9", status=status))

    assert (body, answer.is_whole) == (b"", True)


def test_lines_may_end_plainly_and_a_reason_may_be_missing():
    assert read(b"HTTP/1.1 200\nA: b\n\nok")[0].headers == {"a": "b"}


@pytest.mark.parametrize(
    ("raw", "is_last"),
    [
        (with_head(b"Connection: Close"), True),
        (with_head(b"Connection: keep-alive"), False),
        (with_head(version=b"1.0"), True),
        (with_head(b"Connection: Keep-Alive", version=b"1.0"), False),
        (with_head(b"Content-Length: 5", b"Transfer-Encoding: chunked"), True),
    ],
    ids=["told to close", "told to keep", "old", "old but kept", "two lengths"],
)
def test_knows_whether_the_connection_lives_on(raw, is_last):
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
        with_head(b"Content-Length: 3") + b"ok",
        with_head(b"Transfer-Encoding: chunked") + b"0x1\r\na\r\n0\r\n\r\n",
        with_head(b"Transfer-Encoding: chunked") + b"-1\r\na\r\n0\r\n\r\n",
        with_head(b"Transfer-Encoding: chunked") + b"1\r\nab\r\n0\r\n\r\n",
        with_head(b"Transfer-Encoding: chunked") + b"f" * 16 + b"\r\nab",
        with_head(b"Transfer-Encoding: chunked") + b"1\r\na\r\n",
        with_head(b"Transfer-Encoding: chunked") + b"0\r\nA\r\n\r\n",
        with_head(b"A: " + b"b" * LONGEST_LINE),
        with_head(*[b"A: b"] * (MOST_HEADERS + 1)),
        b"HTTP/1.1 200 " + b"O" * LONGEST_LINE,
        HINT * MOST_HINTS + with_head(),
    ],
)
def test_refuses_what_is_not_in_order(raw):
    with pytest.raises(BadAnswer):
        read(raw)


@pytest.mark.parametrize("filler", [b" ", b"\t ", b"a ", b"a:", b"\xff"])
@tries(5)
def test_a_long_line_takes_no_longer_than_others(filler):
    line = b"A:x" + filler * (LONGEST_LINE // len(filler) - 10) + b"y\0"

    start = time.perf_counter()
    with pytest.raises(BadAnswer):
        read(with_head(line))
    assert_quick(time.perf_counter() - start, 0.1)


def test_takes_as_much_as_it_allows():
    lines = [b"A%d: b" % number for number in range(MOST_HEADERS)]
    hints = HINT * (MOST_HINTS - 1)

    assert len(read(hints + with_head(*lines))[0].headers) == MOST_HEADERS
