"""What a client sees of a run: its answer, and what it does meanwhile."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, assert_never

from runs.engine.observations import stringify_value
from runs.live.sse import ApiEvent
from runs.models import AgentStep, ModelCall, Run

Json = dict[str, Any]

PARAGRAPH = "\n\n"
MAX_OBSERVATION_CHARACTERS = 2_000
"""Of a result in what an agent does meanwhile; the run has it whole."""
PARSE_ERROR = "_Exception"
"""The tool of a step that reports to the model that its reply could not be read."""
STARTED = {AgentStep.Status.STARTED, AgentStep.Status.AWAITING_APPROVAL}
UNDECIDED = {AgentStep.Status.AWAITING_APPROVAL, AgentStep.Status.UNKNOWN}
WAITING_FOR_PEOPLE = (Run.Status.AWAITING_APPROVAL, Run.Status.AWAITING_DECISION)
ENDED = {*AgentStep.ANSWERED, AgentStep.Status.CANCELED}


@dataclass(frozen=True)
class AnswerText:
    """More of the answer."""

    text: str


@dataclass(frozen=True)
class AnswerBreak:
    """The text so far was a remark before calls of tools."""


@dataclass(frozen=True)
class Reasoning:
    """What the model thought."""

    text: str


@dataclass(frozen=True)
class CallStarted:
    """A tool is called."""

    step: Json


@dataclass(frozen=True)
class CallEnded:
    """A call has a result, or will have none."""

    step: Json


@dataclass(frozen=True)
class DecisionNeeded:
    """The run waits for a person to decide about a call."""

    step: Json
    decision: int | None = None
    """Its number, if the call is one of a sub-agent."""


@dataclass(frozen=True)
class RunEnded:
    """The run is over; nothing follows."""

    run: Json


Said = (
    AnswerText
    | AnswerBreak
    | Reasoning
    | CallStarted
    | CallEnded
    | DecisionNeeded
    | RunEnded
)


@dataclass
class _Draft:
    """What was sent of the text that a model is writing."""

    attempt: int
    sent: str = ""
    is_broken: bool = False
    """The rest is sent when the reply is complete: pieces are missing."""


@dataclass
class Narration:
    """Turns the events of one run into what a client is sent, each thing once.

    With `streams_text`, text is sent while the model writes it. Text of an attempt
    that fails cannot be taken back: the complete reply follows it as a new paragraph.
    """

    streams_text: bool
    _run: Json = field(default_factory=dict)
    _draft: _Draft | None = None
    _next_number: int = 0
    _last_text: str = ""
    """The text of the last reply, if it has been sent."""
    _has_text: bool = False
    """Whether any text was sent since the last break."""
    _started: set[int] = field(default_factory=set)
    _ended: set[int] = field(default_factory=set)
    _undecided: dict[int, Json] = field(default_factory=dict)
    _asked: set[tuple[int, str]] = field(default_factory=set)

    def narrate(self, event: ApiEvent) -> Iterator[Said]:
        """Yield what an event says to a client."""
        match event.name:
            case "draft" if self.streams_text:
                yield from self._narrate_draft(event.content)
            case "model_call":
                yield from self._narrate_reply(event.content)
            case "step":
                yield from self._narrate_step(event.content)
            case "child_decision":
                yield DecisionNeeded(event.content["step"], event.content["decision"])
            case "run":
                self._run = event.content
                yield from self._ask_people()
            case "end":
                yield from self._narrate_output()
                yield RunEnded(self._run)

    def _narrate_draft(self, draft: Json) -> Iterator[Said]:
        number, attempt = draft["number"], draft["attempt"]
        if number != self._next_number:  # sent, or an earlier reply is missing
            return
        known = self._draft
        if known is None or not known.sent:
            known = self._draft = _Draft(attempt)
        start = len(known.sent) - draft["at"]
        if known.attempt != attempt or start < 0:
            known.is_broken = True
        if not known.is_broken and (text := draft["text"][start:]):
            known.sent += text
            yield self._build_text(text)

    def _narrate_reply(self, call: Json) -> Iterator[Said]:
        text, sent = call["text"], self._draft.sent if self._draft else ""
        self._next_number, self._draft = call["number"] + 1, None
        if call["purpose"] == ModelCall.Purpose.SUMMARY:
            return
        if call["reasoning"].strip():
            yield Reasoning(call["reasoning"])
        if not self.streams_text:
            if text.strip():
                yield Reasoning(text)
            return
        if sent and not text.startswith(sent):
            yield AnswerBreak()
            sent = ""
        if rest := text[len(sent) :]:
            yield self._build_text(rest)
        self._last_text = text
        if call["tool_calls"] and self._has_text:
            self._has_text = False
            yield AnswerBreak()

    def _build_text(self, text: str) -> AnswerText:
        self._has_text = True
        return AnswerText(text)

    def _narrate_step(self, step: Json) -> Iterator[Said]:
        index, status = step["index"], step["status"]
        if step["tool"] == PARSE_ERROR:
            return
        if status in STARTED | ENDED and index not in self._started:
            self._started.add(index)
            yield CallStarted(step)
        self._undecided.pop(index, None)
        if status in UNDECIDED:
            self._undecided[index] = step
        if status in ENDED and index not in self._ended:
            self._ended.add(index)
            yield CallEnded(step)

    def _ask_people(self) -> Iterator[Said]:
        """Report once whose decision the run awaits: decisions exist when it waits."""
        if self._run["status"] not in WAITING_FOR_PEOPLE:
            return
        for index, step in self._undecided.items():
            if (question := (index, step["status"])) not in self._asked:
                self._asked.add(question)
                yield DecisionNeeded(step)

    def _narrate_output(self) -> Iterator[Said]:
        """Yield the output, unless it was the last reply."""
        text = get_output_text(self._run)
        if text and not (self._has_text and self._last_text.strip() == text.strip()):
            if self._has_text:
                yield AnswerBreak()
            yield AnswerText(text)


def get_output_text(run: Json) -> str:
    """Return the answer as text; empty without one."""
    output = run.get("output")
    if output is None:
        return ""
    return output if isinstance(output, str) else stringify_value(output)


def describe_step(said: Reasoning | CallStarted | CallEnded) -> str:
    """Return what an agent does, as text of its reasoning."""
    match said:
        case Reasoning():
            return said.text.rstrip() + "\n"
        case CallStarted():
            return f"{said.step['tool']}({dump_arguments(said.step)})\n"
        case CallEnded():
            result = said.step["observation"] or said.step["status"]
            return f"→ {shorten_observation(result)}\n"
        case _:
            assert_never(said)


def dump_arguments(step: Json) -> str:
    value = step["tool_input"]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def shorten_observation(text: str) -> str:
    if len(text) <= MAX_OBSERVATION_CHARACTERS:
        return text
    return text[: MAX_OBSERVATION_CHARACTERS - 1] + "…"
