"""Spans as an OTLP request: the protobuf of `ExportTraceServiceRequest`, written here.

Only what these spans use; the numbers are those of opentelemetry-proto 1.x.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

Attribute = str | bool | int | float | Sequence[str]
Attributes = Mapping[str, Attribute]

VARINT, FIXED64, LENGTH = 0, 1, 2
"""Wire types."""
SPAN_KINDS = {"internal": 1, "client": 3}
STATUS_ERROR = 2
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Span:
    trace_id: str
    """32 hex digits."""
    span_id: str
    """16 hex digits."""
    parent_id: str
    """16 hex digits; empty for the root of a trace."""
    name: str
    started_at: datetime
    ended_at: datetime
    kind: Literal["internal", "client"] = "internal"
    attributes: Attributes = field(default_factory=dict)
    error: str | None = None
    """Why it failed, possibly without a message; None if it did not."""


def encode_traces(
    resource: Attributes, spans: Iterable[Span], *, scope: str, version: str
) -> bytes:
    scope_spans = encode_message(
        1, encode_text(1, scope) + encode_text(2, version)
    ) + b"".join(encode_message(2, encode_span(span)) for span in spans)
    resource_spans = encode_message(1, _attributes(1, resource)) + encode_message(
        2, scope_spans
    )
    return encode_message(1, resource_spans)


def encode_span(span: Span) -> bytes:
    parts = [
        encode_message(1, bytes.fromhex(span.trace_id)),
        encode_message(2, bytes.fromhex(span.span_id)),
        encode_message(4, bytes.fromhex(span.parent_id)) if span.parent_id else b"",
        encode_text(5, span.name),
        encode_number(6, SPAN_KINDS[span.kind]),
        _time(7, span.started_at),
        _time(8, max(span.ended_at, span.started_at)),
        _attributes(9, span.attributes),
    ]
    if span.error is not None:
        parts.append(
            encode_message(
                15, encode_text(2, span.error) + encode_number(3, STATUS_ERROR)
            )
        )
    return b"".join(parts)


def _attributes(number: int, attributes: Attributes) -> bytes:
    return b"".join(
        encode_message(
            number, encode_text(1, name) + encode_message(2, _any_value(value))
        )
        for name, value in attributes.items()
    )


def _any_value(value: Attribute) -> bytes:
    match value:
        case bool():
            return encode_number(2, int(value))
        case int():
            return encode_number(3, value)
        case float():
            return _tag(4, FIXED64) + struct.pack("<d", value)
        case str():
            return encode_text(1, value)
    return encode_message(
        5, b"".join(encode_message(1, _any_value(one)) for one in value)
    )


def _time(number: int, moment: datetime) -> bytes:
    nanoseconds = (moment - EPOCH) // timedelta(microseconds=1) * 1000
    return _tag(number, FIXED64) + struct.pack("<Q", max(nanoseconds, 0))


def encode_text(number: int, text: str) -> bytes:
    return encode_message(number, text.encode("utf-8", "replace"))


def encode_message(number: int, content: bytes) -> bytes:
    return _tag(number, LENGTH) + _varint(len(content)) + content


def encode_number(number: int, value: int) -> bytes:
    return _tag(number, VARINT) + _varint(value & (1 << 64) - 1)


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
