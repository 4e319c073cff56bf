"""Read the body of an OTLP request: its size, compression and format."""

import zlib
from typing import Literal

from runs.services.telemetry.importing.otlp_json import JsonUnreadable, parse_json_spans
from runs.services.telemetry.importing.protobuf import (
    ProtobufUnreadable,
    parse_protobuf_spans,
)
from runs.services.telemetry.importing.spans import ReceivedSpan, TraceRefused

MAX_BODY_BYTES = 16 * 1024 * 1024
"""Of a request, before and after it is decompressed."""

Format = Literal["protobuf", "json"]
CONTENT_TYPES: dict[str, Format] = {
    "application/x-protobuf": "protobuf",
    "application/json": "json",
}


def get_format(content_type: str) -> Format | None:
    """Return the format that a header names; None if it is another one."""
    return CONTENT_TYPES.get(content_type.partition(";")[0].strip().lower())


def refuse_size() -> TraceRefused:
    return TraceRefused(
        413,
        f"The request is larger than {MAX_BODY_BYTES // 1024 // 1024} MB. Send fewer "
        "spans per request: lower OTEL_BSP_MAX_EXPORT_BATCH_SIZE.",
    )


def parse_spans(body: bytes, *, format: Format, encoding: str) -> list[ReceivedSpan]:
    """Return the spans of a request; raise `TraceRefused`."""
    raw = _decompress(body, encoding.strip().lower())
    try:
        return parse_json_spans(raw) if format == "json" else parse_protobuf_spans(raw)
    except (JsonUnreadable, ProtobufUnreadable) as error:
        name = "JSON" if format == "json" else "protobuf"
        raise TraceRefused(
            400, f"The body is not an OTLP trace request in {name}: {error}."
        ) from None


def _decompress(body: bytes, encoding: str) -> bytes:
    """Return the body; a small one cannot become too large in memory."""
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "deflate"):
        raise TraceRefused(
            415, f"The content encoding {encoding[:40]!r} is unknown. Use gzip or none."
        )
    unzip = zlib.decompressobj(31 if encoding == "gzip" else 15)
    try:
        found = unzip.decompress(body, MAX_BODY_BYTES + 1)
    except zlib.error:
        raise TraceRefused(400, f"The body is not valid {encoding}.") from None
    if len(found) > MAX_BODY_BYTES:
        raise refuse_size()
    if not unzip.eof:
        raise TraceRefused(400, f"The {encoding} body is cut off.")
    return found
