"""The stored history of a run, in the order in which the engine asks for it."""

import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from runs.engine.effects import CallModel, ModelReplied, ToolResult, ToolsFinished
from runs.engine.observations import stringify_value
from runs.engine.types import (
    AgentSpec,
    AudioPart,
    HistoryTurn,
    ImagePart,
    MediaPart,
    ModelSettings,
    Reply,
    ResumePoint,
    Usage,
)
from runs.models import AgentStep, ModelAttempt, ModelCall, Resume, Run, StepMedia
from runs.store.partial_texts import load_partial_texts
from runs.store.specs import load_spec
from tools.media import IMAGE_TYPES, MODEL_AUDIO_FORMATS

MEDIA_NAMED = re.compile(r"\[(image|sound) \d")
"""Finds an image or sound in the text of a result."""

REPLAYED_CALL_FIELDS = (
    "number",
    "purpose",
    "at_index",
    "reply",
    "elapsed",
    "is_copied",
)
REPLAYED_STEP_FIELDS = (
    "index",
    "status",
    "observation",
    "value",
    "elapsed",
    "usage",
    "is_copied",
)
"""What a replay needs."""


@dataclass
class RunHistory:
    """The rows of a run as outcomes; the driver of the engine consumes them."""

    spec: AgentSpec
    turns: tuple[HistoryTurn, ...]
    resumes: tuple[ResumePoint, ...]
    calls: list[ModelCall]
    """Replies not replayed yet, in order, without discarded ones."""
    steps: dict[int, AgentStep]
    inputs: dict[str, Any]
    copies_are_free: bool = True
    """Whether copied calls do not count toward limits, as in a fork."""

    def next_reply(self, effect: CallModel) -> tuple[ModelCall, ModelReplied] | None:
        """Return the recorded reply to `effect`; None at the end of the history."""
        if not self.calls:
            return None
        call = self.calls[0]
        if (call.purpose, call.at_index) != (effect.purpose, effect.at_index):
            return None
        del self.calls[0]
        reply = Reply.model_validate(call.reply)
        if call.is_copied and self.copies_are_free:
            reply = reply.model_copy(update={"usage": Usage()})
            return call, ModelReplied(reply)
        return call, ModelReplied(reply, call.elapsed)


def load_history_before(call: ModelCall) -> RunHistory:
    """Return what led to `call`, under the spec it was made with."""
    record = load_history(call.run, before=call.number)
    if call.is_copied:
        record.copies_are_free = False
        record.inputs = get_inputs_at_call(call)
        if call.spec is not None:
            record.spec = load_spec(call.spec)
    return record


def load_history(run: Run, *, before: int | None = None) -> RunHistory:
    """Return the history of `run`; with `before`, up to that model call."""
    if before is None and is_fresh_run(run):
        return RunHistory(
            load_spec(run.spec), load_earlier_turns(run), (), [], {}, run.inputs
        )
    resumes = [
        r for r in Resume.objects.filter(run=run) if _is_resume_before(r, before)
    ]
    rows = ModelCall.objects.filter(run=run).order_by("number")
    steps = AgentStep.objects.filter(run=run)
    if before is not None:  # for a page, perhaps thousands of rows
        rows = rows.filter(number__lt=before).only(*REPLAYED_CALL_FIELDS)
        steps = steps.filter(model_call__number__lt=before).only(*REPLAYED_STEP_FIELDS)
    return RunHistory(
        spec=load_spec(run.spec),
        turns=load_earlier_turns(run),
        resumes=tuple(
            ResumePoint(at_index=r.at_index, limits=r.limits) for r in resumes
        ),
        calls=[call for call in rows if not is_discarded_reply(call, resumes)],
        steps={step.index: step for step in steps},
        inputs=run.inputs,
    )


def get_inputs_at_call(call: ModelCall) -> dict[str, Any]:
    """Return the inputs of a copied call, perhaps from another run."""
    earlier: list[tuple[int, dict[str, Any]]] = call.run.earlier_inputs or []
    return next((old for end, old in earlier if call.number < end), call.run.inputs)


def is_fresh_run(run: Run) -> bool:
    """Whether no worker has run a step of a claimed run yet."""
    return run.fence == 1 and run.next_number == 0


def _is_resume_before(resume: Resume, before: int | None) -> bool:
    return before is None or resume.at_number <= before


def is_discarded_reply(call: ModelCall, resumes: list[Resume]) -> bool:
    """Whether a resume discarded this reply: it led to the end, not to a step."""
    return any(
        call.at_index == resume.at_index and call.number < resume.at_number
        for resume in resumes
    )


def load_earlier_turns(run: Run) -> tuple[HistoryTurn, ...]:
    """Return the earlier turns that were selected when the run began."""
    return load_earlier_turns_of([run])[run.pk]


def load_earlier_turns_of(runs: Sequence[Run]) -> dict[int, tuple[HistoryTurn, ...]]:
    """Return the earlier turns by run, with as many queries as for one."""
    keys = {pk for run in runs for pk in run.turn_ids}
    rows = Run.objects.in_bulk(keys) if keys else {}
    written = load_stopped_answers(rows.values()) if rows else {}
    found = {}
    for run in runs:
        seen_at = run.turns_seen_at or run.started_at
        earlier = (
            build_turns(rows[pk], seen_at=seen_at, written=written.get(pk))
            for pk in run.turn_ids
            if pk in rows
        )
        found[run.pk] = tuple(chain(*earlier, parse_given_turns(run)))
    return found


def build_turns(
    run: Run, *, seen_at: datetime | None = None, written: str | None = None
) -> tuple[HistoryTurn, ...]:
    """Return an earlier run as the model sees it, after the messages it began with."""
    turn = build_turn(run, seen_at=seen_at, written=written)
    return (*parse_given_turns(run), turn)


def parse_given_turns(run: Run) -> tuple[HistoryTurn, ...]:
    return tuple(
        HistoryTurn(question=question, answer=answer, is_note=answer is None)
        for question, answer in run.given_turns or ()
    )


def load_stopped_answers(runs: Iterable[Run]) -> dict[int, str]:
    """Return what was written of the answers that a person stopped, by run."""
    return load_partial_texts([r for r in runs if r.status == Run.Status.CANCELED])


def build_turn(
    run: Run, *, seen_at: datetime | None = None, written: str | None = None
) -> HistoryTurn:
    """Return an earlier run as the model sees it.

    The answer is that of a success, or what was `written` of a stopped one. With
    `seen_at`, as it was then: resuming an earlier turn does not change the prompts of
    later runs.
    """
    answer = run.output if run.status == Run.Status.SUCCEEDED else written
    if seen_at is not None and run.ended_at is not None and run.ended_at > seen_at:
        answer = None
    if answer is not None and not isinstance(answer, str):
        answer = stringify_value(answer)
    return HistoryTurn(question=extract_question(run.inputs), answer=answer)


def extract_question(inputs: dict[str, object]) -> str:
    """Return the user's message: the variable `input`, else the first variable."""
    value = inputs.get("input", next(iter(inputs.values()), ""))
    return str(value)


def build_tool_results(
    steps: Iterable[AgentStep], model: ModelSettings
) -> ToolsFinished:
    """Return the results of answered steps, with the media that the model takes."""
    rows = list(steps)
    media = load_media(rows, model) if model.images or model.audio else {}
    return ToolsFinished(
        tuple(build_tool_result(row, media.get(row.pk, ())) for row in rows)
    )


def load_media(
    steps: Sequence[AgentStep], model: ModelSettings
) -> dict[int, tuple[MediaPart, ...]]:
    """Return the media of each step that the model takes."""
    found: dict[int, list[MediaPart]] = {}
    types = [*(IMAGE_TYPES if model.images else ())]
    types += MODEL_AUDIO_FORMATS if model.audio else ()
    named = [row.pk for row in steps if MEDIA_NAMED.search(row.observation)]
    if named:  # a query only where a text names an image or sound
        rows = StepMedia.objects.filter(step__in=named, media_type__in=types)
        for row in rows.order_by("step", "position"):
            found.setdefault(row.step_id, []).append(build_media_part(row))
    return {pk: tuple(parts) for pk, parts in found.items()}


def build_media_part(row: StepMedia) -> MediaPart:
    data = b64encode(row.content).decode()
    if row.is_image:
        return ImagePart(media_type=row.media_type, data=data)
    sound = MODEL_AUDIO_FORMATS[row.media_type]
    return AudioPart(format=sound, data=data, number=row.position)


def build_tool_result(step: AgentStep, media: tuple[MediaPart, ...] = ()) -> ToolResult:
    used = step.usage or {}
    return ToolResult(
        observation=step.observation,
        failed=step.has_failed,
        value=step.value,
        elapsed=step.elapsed or 0.0,
        is_copied=step.is_copied,
        tokens=used.get("tokens", 0),
        cost=used.get("cost", 0.0),
        media=media,
    )


class FailedAttempts(NamedTuple):
    """The recorded failed attempts of one model call."""

    number: int
    since_wait: int
    """Those after the last wait for an unavailable provider, too."""
    seconds: float
    """Working time of the attempts after the last resume."""


def count_failed_attempts(run: Run, number: int) -> FailedAttempts:
    attempts = list(ModelAttempt.objects.filter(run=run, number=number))
    resume = Resume.objects.filter(run=run).last() if attempts else None
    recent = [a for a in attempts if resume is None or a.started_at > resume.at]
    woken_at = run.queued_at if run.waiting_since else None
    newest = [a for a in recent if woken_at is None or a.started_at > woken_at]
    return FailedAttempts(
        number=len(attempts),
        since_wait=len(newest),
        seconds=sum(a.elapsed for a in recent),
    )
