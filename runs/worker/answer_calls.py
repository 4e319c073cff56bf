"""Answer the calls of a run in a tool mode, in place of the tools.

Whether a call may be made is decided here, before any tool is reached, and nowhere
else. The answers follow from the steps in their order, so a run that has lost its
worker, or a fork, arrives at the same ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from runs.engine.effects import PlannedStep
from runs.engine.types import ToolMode
from runs.models import AgentStep
from runs.services.spec.freeze import AGENT_KIND
from runs.services.tool_modes.recording import (
    Recording,
    canonical_arguments,
    copy_recorded_media,
    load_recording,
    names_media,
)
from runs.store.database_clock import site_clock
from tools.spec import ToolSpec

Status, AnsweredBy = AgentStep.Status, AgentStep.AnsweredBy

HELD_BACK = (
    "This call was not sent, because this run only tries things out. In a real run it "
    "would have been sent. Continue as if it had succeeded."
)
NO_RECORDING = "There is no recording of this call, so it was not made."
MAX_NAMED_CALLS = 5
MAX_NAMED_ARGUMENTS = 200
"""Characters of the arguments that a message repeats."""


class NotRecorded(Exception):
    """A strict replay has come to calls that are not in its recording."""

    def __init__(self, steps: Sequence[AgentStep]) -> None:
        named = "; ".join(_name_call(step) for step in steps[:MAX_NAMED_CALLS])
        more = len(steps) - MAX_NAMED_CALLS
        rest = f"; and {more} more" if more > 0 else ""
        super().__init__(f"The recording does not contain these calls: {named}{rest}.")


def _name_call(step: AgentStep) -> str:
    given = str(step.tool_input)
    if len(given) > MAX_NAMED_ARGUMENTS:
        given = f"{given[:MAX_NAMED_ARGUMENTS]}…"
    return f"{step.tool}({given})"


class ToolChanged(NotRecorded):
    """The recording has answers for calls that the agent's tools now refuse."""

    def __init__(self, steps: Sequence[AgentStep]) -> None:
        named = "; ".join(
            f"{_name_call(step)}: {step.observation[:MAX_NAMED_ARGUMENTS]}"
            for step in steps[:MAX_NAMED_CALLS]
        )
        Exception.__init__(
            self,
            "Tools have changed since the recording, and refuse calls that it "
            f"contains: {named}",
        )


@dataclass
class CallAnswers:
    mode: ToolMode
    recording: Recording
    pairs: list[tuple[AgentStep, AgentStep]] = field(default_factory=list)
    """Recorded and replayed steps of the newest round."""
    refused: list[AgentStep] = field(default_factory=list)
    """Steps of the newest round that a tool answered when they were recorded."""

    def answer_calls(
        self, rows: Sequence[AgentStep], plans: Sequence[PlannedStep]
    ) -> list[AgentStep]:
        """Answer the calls of a round that may not be made; return the changed rows.

        `rows` are in call order, as the worker has built or read them. Answered ones
        only take their answer out of the recording.
        """
        self.pairs, self.refused = [], []
        changed: list[AgentStep] = []
        for row, plan in zip(rows, plans, strict=True):
            if plan.tool is None:
                self._note_refused(row)
            elif self._answer(row, plan.tool):
                changed.append(row)
        return changed

    def _note_refused(self, row: AgentStep) -> None:
        """Note a call that no tool accepts, if a strict replay has an answer for it."""
        if self.mode.kind != "replay_strict":
            return
        call = self.recording.take_call(row.tool, row.tool_input, any_arguments=False)
        if call is not None:
            self.refused.append(row)

    def _answer(self, row: AgentStep, spec: ToolSpec) -> bool:
        if self.mode.kind == "hold_back":
            if row.is_answered or is_sent_in_trial(spec):
                return False
            _set_answer(row, spec, AnsweredBy.HELD_BACK, HELD_BACK)
            return True
        return self._replay(row, spec)

    def _replay(self, row: AgentStep, spec: ToolSpec) -> bool:
        call = self.recording.take_call(
            row.tool, row.tool_input, any_arguments=self.mode.kind == "replay_by_tool"
        )
        if call is not None:
            self.pairs.append((call.step, row))
        if row.is_answered:
            return False
        if call is None:
            if self.mode.sends_reads and spec.effect == "read" and not spec.asks:
                return False
            _set_answer(
                row, spec, AnsweredBy.NO_RECORDING, NO_RECORDING, status=Status.FAILED
            )
            return True
        same = canonical_arguments(row.tool_input) == call.arguments
        _set_answer(
            row,
            spec,
            AnsweredBy.RECORDING if same else AnsweredBy.OTHER_ARGUMENTS,
            call.step.observation,
            status=call.step.status,
        )
        if spec.return_direct and call.step.value is not None:
            row.value = call.step.value
        return True

    @property
    def has_media(self) -> bool:
        """Whether a replayed result of the newest round names an image or sound."""
        return any(names_media(recorded) for recorded, _ in self.pairs)

    def copy_media(self) -> None:
        """Store the images and sounds of the newest round, if any."""
        copy_recorded_media(self.pairs)

    def require_recorded(self, rows: Sequence[AgentStep]) -> None:
        """Raise `NotRecorded` if a strict replay has come to another call."""
        if self.mode.kind != "replay_strict":
            return
        if self.refused:
            raise ToolChanged(self.refused)
        missing = [row for row in rows if row.answered_by == AnsweredBy.NO_RECORDING]
        if missing:
            raise NotRecorded(missing)


def load_call_answers(mode: ToolMode) -> CallAnswers:
    return CallAnswers(mode, load_recording(mode.recording))


def is_sent_in_trial(spec: ToolSpec) -> bool:
    """Whether a call may be made while others are held back.

    It only reads, and needs nobody's approval; or it is an agent, whose own calls are
    held back.
    """
    return not spec.asks and (spec.effect == "read" or spec.kind == AGENT_KIND)


def _set_answer(
    row: AgentStep,
    spec: ToolSpec,
    answered_by: str,
    observation: str,
    *,
    status: str = Status.SUCCEEDED,
) -> None:
    now = site_clock.now()
    row.answered_by, row.status, row.observation = answered_by, status, observation
    row.value = observation if spec.return_direct else None
    row.elapsed = row.duration = 0.0
    row.attempts = 0
    row.started_at, row.ended_at = row.started_at or now, now
