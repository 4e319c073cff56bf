"""Read the JSON form of `ExportTraceServiceRequest`.

Ids are hex digits, whole numbers may be texts, and unknown fields are skipped.
"""

import json
from collections.abc import Iterator
from typing import Any

from runs.services.telemetry.importing.attributes import MAX_DEPTH, build_span
from runs.services.telemetry.importing.spans import ReceivedSpan
from runs.services.telemetry.otlp import STATUS_ERROR


class JsonUnreadable(ValueError):
    """The body is not JSON of this shape."""


def parse_json_spans(body: bytes) -> list[ReceivedSpan]:
    """Return the spans of a request; raise `JsonUnreadable`."""
    try:
        document = json.loads(body)
        return list(_iter_spans(document))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise JsonUnreadable(str(error)[:200]) from None


def _iter_spans(document: Any) -> Iterator[ReceivedSpan]:
    for resource_spans in _objects(_object(document), "resourceSpans"):
        resource = _object(resource_spans.get("resource") or {})
        service = str(_read_attributes(resource).get("service.name") or "")
        for scope_spans in _objects(resource_spans, "scopeSpans"):
            for span in _objects(scope_spans, "spans"):
                yield _read_span(span, service)


def _read_span(raw: dict[str, Any], service: str) -> ReceivedSpan:
    status = _object(raw.get("status") or {})
    return build_span(
        trace_id=str(raw.get("traceId") or "").lower(),
        span_id=str(raw.get("spanId") or "").lower(),
        parent_id=str(raw.get("parentSpanId") or "").lower(),
        name=str(raw.get("name") or ""),
        service=service,
        started_at=_whole(raw.get("startTimeUnixNano")),
        ended_at=_whole(raw.get("endTimeUnixNano")),
        attributes=_read_attributes(raw),
        events=[_read_attributes(event) for event in _objects(raw, "events")],
        has_failed=status.get("code") in (STATUS_ERROR, "STATUS_CODE_ERROR"),
        message=str(status.get("message") or ""),
    )


def _read_attributes(holder: dict[str, Any]) -> dict[str, Any]:
    return {
        str(pair.get("key") or ""): _read_value(pair.get("value"), depth=0)
        for pair in _objects(holder, "attributes")
    }


def _read_value(value: Any, *, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise JsonUnreadable("an attribute is nested too deeply")
    for kind, found in _object(value or {}).items():
        match kind:
            case "stringValue":
                return str(found)
            case "boolValue":
                return bool(found)
            case "intValue":
                return _whole(found)
            case "doubleValue":
                return float(found)
            case "arrayValue":
                values = _list(_object(found).get("values"))
                return [_read_value(one, depth=depth + 1) for one in values]
            case "kvlistValue":
                pairs = _objects(_object(found), "values")
                return {
                    str(pair.get("key") or ""): _read_value(
                        pair.get("value"), depth=depth + 1
                    )
                    for pair in pairs
                }
            case "bytesValue":
                return f"({len(str(found)) * 3 // 4} bytes)"
    return None


def _objects(holder: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [_object(one) for one in _list(holder.get(name))]


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise JsonUnreadable(f"an object was expected, not {str(value)[:40]!r}")
    return value


def _list(value: Any) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise JsonUnreadable(f"a list was expected, not {str(value)[:40]!r}")
    return value or []


def _whole(value: Any) -> int:
    return int(value) if isinstance(value, str | int) and value != "" else 0
