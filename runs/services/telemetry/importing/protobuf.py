"""Read the protobuf of `ExportTraceServiceRequest`; write that of the answers.

The numbers are those of opentelemetry-proto 1.x; unknown fields are skipped.
"""

import struct
from collections.abc import Iterator
from typing import Any

from runs.services.telemetry.importing.attributes import MAX_DEPTH, build_span
from runs.services.telemetry.importing.spans import ReceivedSpan
from runs.services.telemetry.otlp import (
    FIXED64,
    LENGTH,
    STATUS_ERROR,
    VARINT,
    encode_message,
    encode_number,
    encode_text,
)

FIXED32 = 5
Field = tuple[int, int | bytes]
"""Its number; a whole number, or the bytes of a text or message."""


class ProtobufUnreadable(ValueError):
    """The bytes are not a protobuf message."""


def parse_protobuf_spans(body: bytes) -> list[ReceivedSpan]:
    """Return the spans of a request; raise `ProtobufUnreadable`."""
    try:
        return list(_iter_spans(body))
    except (UnicodeDecodeError, struct.error, IndexError) as error:
        raise ProtobufUnreadable(str(error)) from None


def encode_trace_response(rejected: int, message: str) -> bytes:
    """Return `ExportTraceServiceResponse`."""
    if not rejected and not message:
        return b""
    return encode_message(1, encode_number(1, rejected) + encode_text(2, message))


def encode_status(code: int, message: str) -> bytes:
    """Return `google.rpc.Status`."""
    return encode_number(1, code) + encode_text(2, message)


def _iter_spans(body: bytes) -> Iterator[ReceivedSpan]:
    for resource_spans in _messages(body, 1):
        service = ""
        for resource in _messages(resource_spans, 1):
            found = _read_attributes(_messages(resource, 1)).get("service.name")
            service = str(found or "")
        for scope_spans in _messages(resource_spans, 2):
            for span in _messages(scope_spans, 2):
                yield _read_span(span, service)


def _read_span(raw: bytes, service: str) -> ReceivedSpan:
    ids, texts, times, code, message = {}, {}, {}, 0, ""
    attributes, exceptions = list[bytes](), list[dict[str, Any]]()
    for number, value in _fields(raw):
        match number, value:
            case ((1 | 2 | 4), bytes()):
                ids[number] = value.hex()
            case 5, bytes():
                texts[number] = value.decode()
            case ((7 | 8), int()):
                times[number] = value
            case 9, bytes():
                attributes.append(value)
            case 11, bytes():
                exceptions.append(_read_attributes(_messages(value, 3)))
            case 15, bytes():
                status = dict(_fields(value))
                code, message = _whole(status.get(3)), _text(status.get(2))
    return build_span(
        trace_id=ids.get(1, ""),
        span_id=ids.get(2, ""),
        parent_id=ids.get(4, ""),
        name=texts.get(5, ""),
        service=service,
        started_at=times.get(7, 0),
        ended_at=times.get(8, 0),
        attributes=_read_attributes(attributes),
        events=exceptions,
        has_failed=code == STATUS_ERROR,
        message=message,
    )


def _read_attributes(pairs: Iterator[bytes] | list[bytes]) -> dict[str, Any]:
    found = {}
    for pair in pairs:
        fields = dict(_fields(pair))
        value = fields.get(2)
        if isinstance(value, bytes):
            found[_text(fields.get(1))] = _read_value(value, depth=0)
    return found


def _read_value(raw: bytes, *, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ProtobufUnreadable("an attribute is nested too deeply")
    found: Any = None
    for number, value in _fields(raw):
        match number, value:
            case 1, bytes():
                found = value.decode()
            case 2, int():
                found = bool(value)
            case 3, int():
                found = value - (1 << 64) if value >> 63 else value
            case 4, int():
                found = struct.unpack("<d", struct.pack("<Q", value))[0]
            case 5, bytes():
                found = [
                    _read_value(one, depth=depth + 1) for one in _messages(value, 1)
                ]
            case 6, bytes():
                pairs = [dict(_fields(one)) for one in _messages(value, 1)]
                found = {
                    _text(pair.get(1)): _read_value(
                        _bytes(pair.get(2)), depth=depth + 1
                    )
                    for pair in pairs
                }
            case 7, bytes():
                found = f"({len(value)} bytes)"
    return found


def _messages(raw: bytes, number: int) -> Iterator[bytes]:
    for found, value in _fields(raw):
        if found == number and isinstance(value, bytes):
            yield value


def _fields(raw: bytes) -> Iterator[Field]:
    at = 0
    while at < len(raw):
        tag, at = _read_varint(raw, at)
        match tag & 7:
            case kind if kind == VARINT:
                value, at = _read_varint(raw, at)
                yield tag >> 3, value
            case kind if kind == FIXED64:
                yield tag >> 3, struct.unpack_from("<Q", raw, at)[0]
                at += 8
            case kind if kind == LENGTH:
                size, at = _read_varint(raw, at)
                if at + size > len(raw):
                    raise ProtobufUnreadable("a field is longer than its message")
                yield tag >> 3, raw[at : at + size]
                at += size
            case kind if kind == FIXED32:
                yield tag >> 3, struct.unpack_from("<I", raw, at)[0]
                at += 4
            case kind:
                raise ProtobufUnreadable(f"unknown wire type {kind}")


def _read_varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = raw[at]
        value |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:
            return value & (1 << 64) - 1, at
    raise ProtobufUnreadable("a number has more than 64 bits")


def _text(value: int | bytes | None) -> str:
    return value.decode() if isinstance(value, bytes) else ""


def _bytes(value: int | bytes | None) -> bytes:
    return value if isinstance(value, bytes) else b""


def _whole(value: int | bytes | None) -> int:
    return value if isinstance(value, int) else 0
