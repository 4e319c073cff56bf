"""JSON on the wire to model servers, hostile input included."""

import json
from collections.abc import Callable
from typing import Any

OnText = Callable[[str], None]


MAX_DEPTH = 100
"""Levels of nesting that are accepted."""


class InvalidJson(ValueError):
    """Not a JSON object that we can store."""


class NotAReply(ValueError):
    """Not a reply in the expected format; the message says what it is instead."""


class ErrorResponse(ValueError):
    """The server sent an error object in place of a reply."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.error = error
        super().__init__("error")


class StreamCutOff(ValueError):
    """The stream ended before the reply did."""


def parse_json_object(raw: bytes | str) -> dict[str, Any]:
    """Return the JSON object in `raw`; raise `InvalidJson` for anything else.

    Also for depth and digits that Python refuses to parse.
    """
    try:
        if isinstance(raw, bytes):
            raw = raw.decode("utf-8-sig", "replace")
        value = json.loads(raw, strict=False)
    except (ValueError, RecursionError) as error:
        raise InvalidJson(str(error)) from error
    if not isinstance(value, dict):
        raise InvalidJson("not an object")
    if raw.count("{") + raw.count("[") > MAX_DEPTH and _is_deep(value):
        raise InvalidJson("nested too deeply")
    return value


def _is_deep(value: Any) -> bool:
    """Whether `value` is nested deeper than what can be stored."""
    layer = [value]
    for _ in range(MAX_DEPTH):
        layer = [
            inner
            for outer in layer
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not layer:
            return False
    return True


def encode_wire_json(value: Any) -> bytes:
    """Return `value` as compact UTF-8 JSON; lone surrogates become U+FFFD."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()


def describe_non_json(raw: bytes) -> str:
    start = raw[:200].lstrip().lower()
    if not start:
        return "an empty answer"
    return (
        "a web page" if start.startswith((b"<!doctype", b"<html")) else "invalid JSON"
    )


def get_text(values: dict[str, Any], key: str) -> str:
    """Return the text under `key`, empty for anything else."""
    value = values.get(key)
    return value if isinstance(value, str) else ""


def get_dicts(values: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the objects in the list under `key`."""
    value = values.get(key)
    if not isinstance(value, list):
        return []
    return [one for one in value if isinstance(one, dict)]
