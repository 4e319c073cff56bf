"""Lines and server-sent events in a stream of bytes."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class ServerSentEvent(NamedTuple):
    """One server-sent event; `id` and `retry` are dropped."""

    name: str
    data: bytes


class StreamTooLarge(ValueError):
    """A stream has more bytes than its reader accepts."""


def parse_server_sent_events(
    chunks: Iterable[bytes], *, max_bytes: int | None = None
) -> Iterator[ServerSentEvent]:
    """Yield the events in `chunks`; an unfinished last one is dropped.

    Without `max_bytes` the caller bounds the stream. With it, raise `StreamTooLarge`
    once the stream is longer.
    """
    name = ""
    data: list[bytes] = []
    for line in iter_stream_lines(chunks, max_bytes=max_bytes):
        if not line:
            if data:
                yield ServerSentEvent(name, b"\n".join(data))
            name, data = "", []
            continue
        field, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace")


def iter_stream_lines(
    chunks: Iterable[bytes], *, max_bytes: int | None = None
) -> Iterator[bytes]:
    """Yield lines without their endings: LF, CR LF or CR; the last may have none.

    A line is yielded as soon as its first end byte arrives, so that a CR at the end of
    a chunk delays nothing. For `max_bytes` see `parse_server_sent_events`.
    """
    held: list[bytes] = []
    after_return = False
    total = 0
    for chunk in chunks:
        total += len(chunk)
        if max_bytes is not None and total > max_bytes:
            raise StreamTooLarge(f"more than {max_bytes:,} bytes")
        if after_return and chunk[:1] == b"\n":
            chunk = chunk[1:]
            after_return = False
        if not chunk:
            continue
        after_return = chunk[-1:] == b"\r"
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *rest = chunk.split(b"\n")
        held.append(first)
        if rest:
            yield b"".join(held)
            yield from rest[:-1]
            held = [rest[-1]]
    last = b"".join(held)
    if last:
        yield last
