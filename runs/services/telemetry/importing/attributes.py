"""Values of attributes as they can be stored, and spans made of them."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from runs.engine.parsing.clean import clean_text
from runs.services.telemetry.importing.spans import MAX_TEXT_CHARS, ReceivedSpan

MAX_DEPTH = 16
"""Lists and maps in each other, in one attribute."""
MAX_KEY_CHARS = 200
MAX_NAME_CHARS = 200
MAX_ERROR_CHARS = 4_000
MAX_WHOLE_NUMBER = 2**63


def build_span(
    *,
    events: Iterable[Mapping[str, Any]],
    message: str,
    name: str,
    service: str,
    attributes: Mapping[str, Any],
    **fields: Any,
) -> ReceivedSpan:
    """Return a span; the message of an exception stands in for that of the status."""
    has_failed = bool(fields["has_failed"])
    thrown = [one.get("exception.message") for one in events]
    error = message or next((str(one) for one in reversed(thrown) if one), "")
    return ReceivedSpan(
        name=clean_text(name)[:MAX_NAME_CHARS],
        service=clean_text(service)[:MAX_NAME_CHARS],
        attributes=clean_value(attributes),
        error=clean_text(error)[:MAX_ERROR_CHARS] if has_failed else "",
        **fields,
    )


def clean_value(value: Any) -> Any:
    """Return a JSON value that every database stores; long texts are cut."""
    match value:
        case str():
            return clean_text(value[:MAX_TEXT_CHARS])
        case bool() | None:
            return value
        case int():
            return value if abs(value) < MAX_WHOLE_NUMBER else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case list():
            return [clean_value(one) for one in value]
        case dict():
            return {
                clean_text(str(key))[:MAX_KEY_CHARS]: clean_value(one)
                for key, one in value.items()
            }
    return None
