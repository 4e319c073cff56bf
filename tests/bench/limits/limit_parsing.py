"""CPU seconds of reading a hostile megabyte, for `tests.bench.bench_limits`."""

import time
from contextlib import suppress

import pytest

from runs.engine.errors import ParseError
from runs.engine.types import ToolCall
from tests.engine.test_properties import HOSTILE, LEADS, read

MEGABYTE = 1_000_000
ROUNDS = 3


@pytest.mark.parametrize(("kind", "lead"), LEADS)
def test_hostile_text(kind, lead, record_property):
    slowest = max(
        seconds_to_read(kind, lead + repeat(piece)) for piece in HOSTILE.values()
    )
    record_property("seconds", slowest)


def test_hostile_arguments(record_property):
    slowest = max(
        seconds_to_read("tool-calling", "", repeat(piece)) for piece in HOSTILE.values()
    )
    record_property("seconds", slowest)


def repeat(piece: str) -> str:
    return piece * (MEGABYTE // len(piece))


def seconds_to_read(kind: str, text: str, arguments: str = "") -> float:
    """Return the least CPU of a few rounds: a busy machine is slow at times."""
    calls = (ToolCall(id="c", name="echo", arguments=arguments),) if arguments else ()
    least = float("inf")
    for _ in range(ROUNDS):
        began = time.thread_time()
        with suppress(ParseError):
            read(kind, text, calls)
        least = min(least, time.thread_time() - began)
    return least
