"""The rows of an imported run: model calls, failed attempts and steps of its spans.

A pure function of all spans of a trace: whatever their order and however many requests
they came in, the run is the same in the end.
"""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

from runs.engine.types import ToolCall
from runs.services.telemetry.importing.conventions import (
    SeenAgent,
    SeenModelCall,
    SeenToolCall,
    get_agent_name,
    get_span_kind,
    read_agent,
    read_model_call,
    read_tool_call,
)
from runs.services.telemetry.importing.spans import ReceivedSpan

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNNAMED = "Imported"


@dataclass
class ToolCallSpan:
    """A tool call below the reply that requested it."""

    span: ReceivedSpan
    seen: SeenToolCall


@dataclass
class PlannedCall:
    """A model call; nothing is `seen` of one that only its tool calls imply."""

    span: ReceivedSpan
    seen: SeenModelCall | None
    failed: list[ReceivedSpan] = field(default_factory=list)
    """Attempts before it."""
    steps: list[ToolCallSpan] = field(default_factory=list)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Those of the reply; those that were made if the trace has no replies."""
        if self.seen is not None and self.seen.reply.tool_calls:
            return self.seen.reply.tool_calls
        return tuple(
            ToolCall(
                id=step.seen.call_id,
                name=step.seen.name,
                arguments=json.dumps(step.seen.arguments, ensure_ascii=False),
            )
            for step in self.steps
        )


class PlannedRun:
    """What a run shows of a trace."""

    def __init__(self, spans: list[ReceivedSpan]) -> None:
        self.spans = sorted(spans, key=lambda one: (one.started_at, one.span_id))
        self.calls: list[PlannedCall] = []
        self.failed: list[ReceivedSpan] = []
        """Attempts after the last call."""
        requests = {one.span_id for one in spans if get_span_kind(one) == "model"}
        for span in self.spans:
            match get_span_kind(span):
                case "model" if span.parent_id in requests:
                    continue  # a library below the one that has reported it already
                case "model":
                    self._add_call(span)
                case "tool":
                    self._add_step(span)

    @cached_property
    def root(self) -> ReceivedSpan | None:
        """The agent whose span is above all others, as far as they have arrived."""
        agents = [one for one in self.spans if get_span_kind(one) == "agent"]
        known = {one.span_id for one in self.spans}
        tops = [one for one in agents if one.parent_id not in known]
        return min(
            tops or agents,
            key=lambda one: (bool(one.parent_id), one.started_at, -one.ended_at),
            default=None,
        )

    @cached_property
    def agent(self) -> SeenAgent | None:
        return read_agent(self.root) if self.root is not None else None

    @property
    def name(self) -> str:
        """The name of the agent; of the program until its span has arrived."""
        if self.root is not None:
            return get_agent_name(self.root) or UNNAMED
        return self.spans[0].service or UNNAMED

    @property
    def started_at(self) -> datetime:
        return to_datetime(min(one.started_at for one in self.spans))

    @property
    def ended_at(self) -> datetime:
        return to_datetime(max(one.ended_at for one in self.spans))

    @property
    def question(self) -> str:
        """What the agent was asked; else what the first request asked."""
        if self.agent is not None and self.agent.question:
            return self.agent.question
        for call in self.calls:
            messages = call.seen.messages if call.seen is not None else ()
            asked = [one.text for one in messages if one.role == "user" and one.text]
            if asked:
                return asked[-1]
        return ""

    @property
    def answer(self) -> str | None:
        """What the agent answered; else the last reply without a call."""
        if self.agent is not None and self.agent.answer:
            return self.agent.answer
        last = self.calls[-1].seen if self.calls else None
        is_final = last is not None and not last.reply.tool_calls
        return (last.reply.text or None) if last is not None and is_final else None

    @property
    def failure(self) -> ReceivedSpan | None:
        """The span that says why the run failed; None if it did not."""
        if self.root is not None:
            return self.root if self.root.has_failed else None
        return self.failed[-1] if self.failed else None

    def _add_call(self, span: ReceivedSpan) -> None:
        seen = read_model_call(span)
        if span.has_failed and not seen.has_reply:
            self.failed.append(span)
            return
        self.calls.append(PlannedCall(span, seen, failed=self.failed))
        self.failed = []

    def _add_step(self, span: ReceivedSpan) -> None:
        seen = read_tool_call(span)
        call = self._find_call(seen.call_id)
        if call is None:
            call = PlannedCall(span, None, failed=self.failed)
            self.failed = []
            self.calls.append(call)
        call.steps.append(ToolCallSpan(span, seen))

    def _find_call(self, call_id: str) -> PlannedCall | None:
        """Return the call that requested a step: by its id, else the one before it."""
        for call in reversed(self.calls if call_id else []):
            requested = call.seen.reply.tool_calls if call.seen is not None else ()
            if any(one.id == call_id for one in requested):
                return call
        return self.calls[-1] if self.calls else None


def to_datetime(nanoseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=nanoseconds // 1000)


def get_seconds(span: ReceivedSpan) -> float:
    return max(span.ended_at - span.started_at, 0) / 1e9


def sum_cost(calls: list[PlannedCall]) -> Decimal:
    return sum((one.seen.cost for one in calls if one.seen is not None), Decimal(0))


def get_error_code(span: ReceivedSpan) -> str:
    found: Any = span.attributes.get("error.type")
    return found[:40] if isinstance(found, str) and found else "imported_error"
