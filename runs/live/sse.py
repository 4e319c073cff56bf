"""The wire format of server-sent events."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from django.utils.html import escape
from django.utils.safestring import SafeString

KEEPALIVE_COMMENT = b": still here\n\n"


class ApiEvent(NamedTuple):
    """A named event with its JSON."""

    name: str
    content: Any


def format_data_lines(text: str) -> bytes:
    """Return `text` as `data:` lines, the line after the last included."""
    flat = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    return (
        b"data: " + flat.encode("utf-8", "replace").replace(b"\n", b"\ndata: ") + b"\n"
    )


def format_event(name: str, content: Any, *, seq: int | None = None) -> bytes:
    """Return a named event with JSON; `seq` becomes its id."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    number = f"id: {seq}\n" if seq is not None else ""
    head = f"{number}event: {name}\ndata: "
    return (head + body + "\n\n").encode("utf-8", "replace")


def parse_events(message: bytes) -> Iterator[ApiEvent]:
    """Yield the named events of a message that `format_event` wrote."""
    name = ""
    for line in message.decode().split("\n"):
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            yield ApiEvent(name, json.loads(line[6:]))


def format_element_update(target: str, swap: str, html: str | SafeString) -> bytes:
    """Return HTML as an update of one element, in lines of an event."""
    return format_data_lines(
        f'<hx-partial hx-target="{target}" hx-swap="{swap}">{html}</hx-partial>'
    )


def format_text_update(target: str, swap: str, text: str) -> bytes:
    return format_element_update(target, swap, escape(text))
