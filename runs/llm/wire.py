"""JSON and server-sent events as model servers send them, hostile ones included."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

OnText = Callable[[str], None]


MAX_DEPTH = 100
"""Levels of nesting of what a server sends."""


class BadJson(ValueError):
    """What a server sent is no JSON object we can read."""


class NoReply(ValueError):
    """What came is no reply in this format; the message says what it is instead."""


class ErrorSent(ValueError):
    """Where a reply should have been, the server sent an error object."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.error = error
        super().__init__("error")


class CutOff(ValueError):
    """The stream ended before the reply did."""


def read_object(raw: bytes | str) -> dict[str, Any]:
    """Return the JSON object in `raw`; raise `BadJson` for anything else.

    Depth and digits that Python refuses to read are "anything else".
    """
    try:
        if isinstance(raw, bytes):
            raw = raw.decode("utf-8-sig", "replace")
        value = json.loads(raw, strict=False)
    except (ValueError, RecursionError) as error:
        raise BadJson(str(error)) from error
    if not isinstance(value, dict):
        raise BadJson("not an object")
    if raw.count("{") + raw.count("[") > MAX_DEPTH and _is_deep(value):
        raise BadJson("nested too deeply")
    return value


def _is_deep(value: Any) -> bool:
    """Whether `value` is nested deeper than what is stored can be."""
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


def write_json(value: Any) -> bytes:
    """Return `value` as compact UTF-8 JSON; lone surrogates become U+FFFD."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()


def what_it_is(raw: bytes) -> str:
    """Return a word for an answer that is no JSON object."""
    start = raw[:200].lstrip().lower()
    if not start:
        return "an empty answer"
    return (
        "a web page" if start.startswith((b"<!doctype", b"<html")) else "no valid JSON"
    )


class Event(NamedTuple):
    """One server-sent event."""

    name: str
    data: bytes


def read_events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Yield the server-sent events in `chunks`; an unfinished last one is dropped."""
    name = ""
    data: list[bytes] = []
    for line in read_lines(chunks):
        if not line:
            if data:
                yield Event(name, b"\n".join(data))
            name, data = "", []
            continue
        field, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace")


def read_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines in `chunks`, whatever they end with, also a last one without."""
    held: list[bytes] = []
    after_return = False
    for chunk in chunks:
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


def text_in(values: dict[str, Any], key: str) -> str:
    """Return the text under `key`, empty for anything else."""
    value = values.get(key)
    return value if isinstance(value, str) else ""


def dicts_in(values: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the objects in the list under `key`."""
    value = values.get(key)
    if not isinstance(value, list):
        return []
    return [one for one in value if isinstance(one, dict)]
