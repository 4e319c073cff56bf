"""Reading one HTTP/1.1 answer, strictly: what is not quite in order is refused."""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedIOBase

PIECE = 64 * 1024
"""Bytes of a body read at once."""
LONGEST_LINE = 64 * 1024
MOST_HEADERS = 100
MOST_HINTS = 10
"""Answers of status 1xx before the real one."""

STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: [^\r\n\0]*)?\r?\n")
HEADER = re.compile(rb"([!#$%&'*+.^_`|~\w-]+):([^\r\n\0]*)\r?\n")
CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n\0]*)?\r?\n")
LENGTH = re.compile(r"\d{1,18}", re.ASCII)
END = (b"\r\n", b"\n")
WITHOUT_BODY = (204, 304)
CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w:.-]{1,40})", re.ASCII | re.IGNORECASE)
TEXT = re.compile(
    r"utf-(8|16|32)|ascii|iso8859|iso2022|cp\d|koi8|shift_jis|euc_|gb|big5|mac-"
)
"""How names of encodings begin that text comes in.

Python knows others too: some unpack, so that little becomes gigabytes, some take time
by the square, and some raise errors of their own.
"""
FRAMING = ("content-length", "transfer-encoding")


def text_of_body(body: bytes, content_type: str) -> str:
    """Return a body as text in the encoding it claims, or in UTF-8."""
    claimed = CHARSET.search(content_type)
    name = "utf-8"
    if claimed is not None:
        try:
            found = codecs.lookup(claimed[1]).name
        except LookupError:
            found = ""
        name = found if TEXT.match(found) else name
    return body.decode(name, "replace")


class BadAnswer(ValueError):
    """What came is no answer in HTTP/1.1, or only the beginning of one."""


@dataclass
class HttpAnswer:
    """An answer whose head was read."""

    status: int
    headers: dict[str, str]
    """Names in small letters; of several headers with one name, the first."""
    is_chunked: bool
    length: int | None
    """Bytes of the body; None where its end says how many."""
    is_last: bool
    """Whether the connection ends with it."""
    is_whole: bool = False
    """Whether all of its body was read."""

    def body(self, file: BufferedIOBase) -> Iterator[bytes]:
        """Yield the body; raise `BadAnswer` where it ends early."""
        if self.is_chunked:
            yield from _chunked(file)
        elif self.length is not None:
            yield from _counted(file, self.length)
        else:
            while piece := file.read1(PIECE):
                yield piece
        self.is_whole = True


def read_answer(file: BufferedIOBase) -> HttpAnswer:
    """Read the head of the next answer, after early hints; raise `BadAnswer`."""
    for _ in range(MOST_HINTS):
        found = STATUS.fullmatch(_line(file))
        if found is None:
            raise BadAnswer("this is no status line")
        headers = _headers(file)
        status = int(found[2])
        if status >= 200:
            return _answer(status, headers, is_old=found[1] == b"0")
    raise BadAnswer("there are too many early hints")


def _answer(status: int, headers: dict[str, str], *, is_old: bool) -> HttpAnswer:
    coding, length = headers.get("transfer-encoding"), headers.get("content-length")
    if coding is not None and coding.lower() != "chunked":
        raise BadAnswer("the transfer encoding is unknown")
    if length is not None and not LENGTH.fullmatch(length):
        raise BadAnswer("the length is no number")
    words = headers.get("connection", "").lower()
    has_body, is_chunked = status not in WITHOUT_BODY, coding is not None
    size = None if length is None or is_chunked else int(length)
    return HttpAnswer(
        status=status,
        headers=headers,
        is_chunked=is_chunked and has_body,
        length=size if has_body else 0,
        # Two ways to say where it ends: nobody knows what comes behind it.
        is_last="keep-alive" not in words
        if is_old
        else "close" in words or (is_chunked and length is not None),
    )


def _headers(file: BufferedIOBase) -> dict[str, str]:
    headers = dict[str, str]()
    for _ in range(MOST_HEADERS + 1):
        line = _line(file)
        if line in END:
            return headers
        found = HEADER.fullmatch(line)
        if found is None:
            raise BadAnswer("this is no header")
        name = found[1].decode("ascii").lower()
        value = found[2].strip(b" \t").decode("latin-1")
        if headers.setdefault(name, value) != value and name in FRAMING:
            raise BadAnswer("it says twice where it ends")
    raise BadAnswer(f"there are more than {MOST_HEADERS} headers")


def _counted(file: BufferedIOBase, left: int) -> Iterator[bytes]:
    while left:
        piece = file.read1(min(left, PIECE))
        if not piece:
            raise BadAnswer("the body is incomplete")
        left -= len(piece)
        yield piece


def _chunked(file: BufferedIOBase) -> Iterator[bytes]:
    while True:
        found = CHUNK.fullmatch(_line(file))
        if found is None:
            raise BadAnswer("this is no chunk")
        size = int(found[1], 16)
        if not size:
            _headers(file)  # trailers tell us nothing
            return
        yield from _counted(file, size)
        if _line(file) not in END:
            raise BadAnswer("a chunk has another length than it says")


def _line(file: BufferedIOBase) -> bytes:
    line = file.readline(LONGEST_LINE + 1)
    if len(line) > LONGEST_LINE:
        raise BadAnswer("a line is too long")
    if line[-1:] != b"\n":
        raise BadAnswer("it ended early")
    return line
