"""One strictly parsed HTTP/1.1 response."""

import codecs
import re
from collections.abc import Callable, Iterator

import httptools

CHUNK_SIZE = 64 * 1024
"""Bytes read at once."""
MAX_LINE = 64 * 1024
MAX_HEADERS = 100
MAX_EARLY_HINTS = 10
"""Responses of status 1xx before the real one."""

CONTENT_LENGTH = re.compile(r"\d{1,18}", re.ASCII)
FRAMING = ("content-length", "transfer-encoding")
CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w:.-]{1,40})", re.ASCII | re.IGNORECASE)
TEXT = re.compile(
    r"utf-(8|16|32)|ascii|iso8859|iso2022|cp\d|koi8|shift_jis|euc_|gb|big5|mac-"
)
"""How the names of text encodings begin.

Python has other codecs too: some decompress, so that little becomes gigabytes, some
take quadratic time, and some raise errors of their own.
"""


def decode_body(body: bytes, content_type: str) -> str:
    """Decode a body as its content type says, or as UTF-8."""
    claimed = CHARSET.search(content_type)
    name = "utf-8"
    if claimed is not None:
        try:
            found = codecs.lookup(claimed[1]).name
        except LookupError:
            found = ""
        name = found if TEXT.match(found) else name
    return body.decode(name, "replace")


class MalformedResponse(ValueError):
    """The bytes received are not one complete HTTP/1.1 response."""


class ResponseReader:
    """Reads one response; its `on_...` methods are called by the parser.

    An exception in one of them would be wrapped by the parser, so they only note what
    is wrong; it is raised after each read.
    """

    def __init__(self, receive: Callable[[int], bytes]) -> None:
        self._receive = receive
        self._parser = httptools.HttpResponseParser(self)
        # Real servers send these, and each of them has only one meaning here.
        self._parser.set_dangerous_leniencies(
            lenient_chunked_length=True,
            lenient_data_after_close=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )
        self.status = 0
        self.headers: dict[str, str] = {}
        """Names in lower case; of several headers with one name, the first."""
        self.has_received = False
        self.is_whole = False
        """Whether the whole body was read."""
        self.is_last = True
        """Whether the connection cannot be used for another request."""
        self._header_count = self._hint_count = 0
        self._silent_bytes = 0
        """Received since the last event that means progress."""
        self._has_head = self._ends_with_connection = False
        self._body: list[bytes] = []
        self._flaw = ""

    def read_head(self) -> None:
        """Read up to the end of the headers, after any early hints."""
        while not self._has_head:
            if not self._feed():
                raise MalformedResponse("the response ended early")

    def iter_body(self) -> Iterator[bytes]:
        """Yield the body as it arrives; raise `MalformedResponse` if it ends early."""
        while True:
            if self._body:
                piece = b"".join(self._body)
                self._body.clear()
                yield piece
            elif self.is_whole:
                return
            elif not self._feed():
                if not self._ends_with_connection:
                    raise MalformedResponse("the body is incomplete")
                self.is_whole = True

    def _feed(self) -> bool:
        piece = self._receive(CHUNK_SIZE)
        if not piece:
            return False
        self.has_received = True
        self._silent_bytes += len(piece)
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            raise MalformedResponse("the server switched protocols") from None
        except httptools.HttpParserError as error:
            if not self.is_whole:  # else only what follows the response is wrong
                raise MalformedResponse(str(error)) from None
            self.is_last = True
        if self._silent_bytes > MAX_LINE:
            self._flaw = "a line is too long"
        if self._flaw:
            raise MalformedResponse(self._flaw)
        return True

    def on_message_begin(self) -> None:
        self._silent_bytes = 0
        self.is_last = True

    def on_status(self, reason: bytes) -> None:
        if CONTROL.search(reason):
            self._flaw = "the status line is malformed"

    def on_header(self, name: bytes, value: bytes) -> None:
        self._silent_bytes = 0
        self._header_count += 1
        if self._header_count > MAX_HEADERS:
            self._flaw = f"there are more than {MAX_HEADERS} headers"
        elif len(name) + len(value) > MAX_LINE:
            self._flaw = "a line is too long"
        elif CONTROL.search(value):
            self._flaw = "a header has control characters"
        elif not self._has_head:
            self._keep_header(name.decode("ascii").lower(), value.decode("latin-1"))
        elif not self.is_whole and name.decode("ascii").lower() in FRAMING:
            self._flaw = "a trailer sets the length of the body"

    def on_headers_complete(self) -> None:
        if self._has_head:
            return
        self.status = self._parser.get_status_code()
        if self._parser.get_http_version() not in ("1.0", "1.1") or self.status < 100:
            self._flaw = "the status line is malformed"
        if self.status == 101:
            self._flaw = "the server switched protocols"
        if self.status >= 200:
            self._header_count = 0  # trailers are counted anew
            self._has_head = True
            self._check_framing()
            # Lines may end with a bare line feed in the head, never between chunks.
            self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=False)

    def on_chunk_header(self) -> None:
        self._silent_bytes = 0

    def on_body(self, body: bytes) -> None:
        self._silent_bytes = 0
        if not self.is_whole:
            self._body.append(body)

    def on_message_complete(self) -> None:
        if self.is_whole:
            return
        if self._has_head:
            self.is_whole = True
            self.is_last = (
                all(name in self.headers for name in FRAMING)
                or not self._parser.should_keep_alive()
            )
            return
        self.headers.clear()
        self._header_count = 0
        self._hint_count += 1
        if self._hint_count >= MAX_EARLY_HINTS:
            self._flaw = "there are too many early hints"

    def _keep_header(self, name: str, value: str) -> None:
        value = value.strip(" \t")
        if name == "transfer-encoding" and name in self.headers:
            self._flaw = "the transfer encoding is given twice"
        if self.headers.setdefault(name, value) != value and name in FRAMING:
            self._flaw = "the length of the body is given twice"

    def _check_framing(self) -> None:
        length, coding = map(self.headers.get, FRAMING)
        if coding is not None and coding.lower() != "chunked":
            self._flaw = "the transfer encoding is unknown"
        if length is not None and not CONTENT_LENGTH.fullmatch(length):
            self._flaw = "the content length is not a number"
        self._ends_with_connection = length is None and coding is None
