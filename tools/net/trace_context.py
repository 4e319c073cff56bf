"""W3C trace context: `traceparent` of a request, and the one that calls send."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

HEADER = "traceparent"
TRACEPARENT = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<parent>[0-9a-f]{16})"
    r"-(?P<flags>[0-9a-f]{2})(?P<more>-.{0,200})?",
)
SAMPLED = 1

_outgoing: ContextVar[str] = ContextVar("outgoing_traceparent", default="")
_incoming: ContextVar[str] = ContextVar("incoming_traceparent", default="")


def parse_traceparent(text: str) -> str:
    """Return a header in the form of version 00; empty if it is not valid."""
    found = TRACEPARENT.fullmatch(text.strip())
    if found is None or found["version"] == "ff":
        return ""
    if found["version"] == "00" and found["more"]:
        return ""
    if not int(found["trace"], 16) or not int(found["parent"], 16):
        return ""
    return build_traceparent(
        found["trace"],
        found["parent"],
        is_sampled=bool(int(found["flags"], 16) & SAMPLED),
    )


def build_traceparent(trace: str, span: str, *, is_sampled: bool) -> str:
    """Return the header for ids in lowercase hex."""
    return f"00-{trace}-{span}-{'01' if is_sampled else '00'}"


def is_sampled(traceparent: str) -> bool:
    """Whether a parsed header asks for the trace to be recorded."""
    return traceparent.endswith("1")


@contextmanager
def send_traceparent(traceparent: str) -> Iterator[None]:
    """Let requests inside carry the header; empty for none."""
    token = _outgoing.set(traceparent)
    try:
        yield
    finally:
        _outgoing.reset(token)


def get_outgoing_traceparent() -> str:
    """Return what requests of this thread carry; empty for none."""
    return _outgoing.get()


@contextmanager
def receive_traceparent(header: str) -> Iterator[None]:
    """Let runs that are started inside belong to the caller's trace."""
    token = _incoming.set(parse_traceparent(header))
    try:
        yield
    finally:
        _incoming.reset(token)


def get_incoming_traceparent() -> str:
    """Return the parent of runs that are started now; empty for none."""
    return _incoming.get()
