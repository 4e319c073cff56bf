"""Spans that are rejected: wrong ids, wrong times, and spans above themselves."""

import re
import time
from collections.abc import Mapping
from enum import StrEnum

from runs.services.telemetry.importing.spans import ReceivedSpan

TRACE_ID = re.compile("(?!0{32})[0-9a-f]{32}")
SPAN_ID = re.compile("(?!0{16})[0-9a-f]{16}")
OLDEST = 946_684_800 * 10**9
"""The beginning of the year 2000, in nanoseconds since 1970."""
MAX_AHEAD = 86_400 * 10**9
"""How much the clock of another machine may be ahead."""


class SpanFlaw(StrEnum):
    """Why a span is rejected."""

    CYCLE = "cycle"
    IDS = "ids"
    TIMES = "times"
    TOO_MANY = "too_many"

    def describe(self, most: int) -> str:
        match self:
            case SpanFlaw.CYCLE:
                return "The parents of the span lead back to itself."
            case SpanFlaw.IDS:
                return "The trace id needs 32 hex digits, the span id 16, not all zero."
            case SpanFlaw.TIMES:
                return "The span starts before 2000, in the future or after its end."
            case SpanFlaw.TOO_MANY:
                return f"A trace has at most {most:,} spans."


def find_flaw(span: ReceivedSpan) -> SpanFlaw | None:
    """Return why a span is rejected by itself; None if it is not."""
    has_ids = TRACE_ID.fullmatch(span.trace_id) and SPAN_ID.fullmatch(span.span_id)
    has_parent = not span.parent_id or re.fullmatch("[0-9a-f]{16}", span.parent_id)
    if not has_ids or not has_parent:
        return SpanFlaw.IDS
    latest = time.time_ns() + MAX_AHEAD
    if not OLDEST <= span.started_at <= span.ended_at <= latest:
        return SpanFlaw.TIMES
    return None


def find_cycles(parents: Mapping[str, str]) -> set[str]:
    """Return the spans that are their own ancestors, given the parent of each."""
    looping: set[str] = set()
    done: set[str] = set()
    for start in parents:
        path: dict[str, int] = {}
        at = start
        while at in parents and at not in done and at not in path:
            path[at] = len(path)
            at = parents[at]
        if at in path:
            looping.update(key for key, place in path.items() if place >= path[at])
        done.update(path)
    return looping
