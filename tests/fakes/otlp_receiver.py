"""A collector on loopback that decodes OTLP over HTTP with a parser of its own.

The parser knows the wire format and the field numbers of opentelemetry-proto, and
nothing of the product's encoder.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.tools.http_server import Answer, Got, Server, serve

Fields = dict[int, list[Any]]


@dataclass
class ReceivedSpan:
    """A span as it arrived."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: int
    start: int
    """Nanoseconds since 1970."""
    end: int
    attributes: dict[str, Any]
    status: int
    message: str


@dataclass
class Collector:
    """The running collector, seen from the test."""

    url: str = ""
    status: int = 200
    """What it answers; spans count as received only with 200."""
    requests: list[Got] = field(default_factory=list)
    spans: list[ReceivedSpan] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)

    def named(self, name: str) -> ReceivedSpan:
        """Return the only span with this name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found


@contextmanager
def collector() -> Iterator[Collector]:
    """Receive until the block ends."""
    found = Collector()

    def answer(got: Got) -> Answer:
        found.requests.append(got)
        if found.status == 200:
            assert got.headers["content-type"] == "application/x-protobuf"
            receive(found, got.body)
        return Answer(b"", found.status, content_type="application/x-protobuf")

    server: Server
    with serve(answer) as server:
        found.url = f"{server.url}/v1/traces"
        yield found


def receive(found: Collector, body: bytes) -> None:
    for resource_spans in parse(body)[1]:
        part = parse(resource_spans)
        found.resources.append(attributes(parse(part[1][0]).get(1, [])))
        for scope_spans in part[2]:
            found.spans += [read_span(raw) for raw in parse(scope_spans)[2]]


def read_span(raw: bytes) -> ReceivedSpan:
    span = parse(raw)
    status = parse(span[15][0]) if 15 in span else {}
    return ReceivedSpan(
        trace_id=span[1][0].hex(),
        span_id=span[2][0].hex(),
        parent_id=span.get(4, [b""])[0].hex(),
        name=span[5][0].decode(),
        kind=span[6][0],
        start=span[7][0],
        end=span[8][0],
        attributes=attributes(span.get(9, [])),
        status=status.get(3, [0])[0],
        message=status.get(2, [b""])[0].decode(),
    )


def attributes(pairs: list[bytes]) -> dict[str, Any]:
    parsed = [parse(pair) for pair in pairs]
    return {pair[1][0].decode(): any_value(pair[2][0]) for pair in parsed}


def any_value(raw: bytes) -> Any:
    ((number, (value, *_)),) = parse(raw).items()
    match number:
        case 1:
            return value.decode()
        case 2:
            return bool(value)
        case 3:
            return value - (1 << 64) if value >> 63 else value
        case 4:
            return struct.unpack("<d", struct.pack("<Q", value))[0]
        case 5:
            return [any_value(one) for one in parse(value).get(1, [])]
    raise AssertionError(f"unknown kind of value: {number}")


def parse(raw: bytes) -> Fields:
    """Return the fields of a message by number."""
    found: Fields = {}
    at = 0
    while at < len(raw):
        tag, at = varint(raw, at)
        match tag & 7:
            case 0:
                value: Any
                value, at = varint(raw, at)
            case 1:
                value, at = struct.unpack_from("<Q", raw, at)[0], at + 8
            case 2:
                size, at = varint(raw, at)
                value, at = raw[at : at + size], at + size
                assert len(value) == size, "cut off"
            case other:
                raise AssertionError(f"unexpected wire type {other}")
        found.setdefault(tag >> 3, []).append(value)
    return found


def varint(raw: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = raw[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at
