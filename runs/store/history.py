"""What a run has on record, in the order in which the engine asks for it again."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from runs.engine.effects import CallModel, ModelAnswered, ToolResult
from runs.engine.observations import text_of
from runs.engine.types import AgentSpec, Reply, ResumePoint, Turn, Usage
from runs.models import AgentStep, ModelAttempt, ModelCall, Resume, Run
from runs.services.freeze_agent import spec_of

SHOWN_OF_CALLS = ("number", "purpose", "at_index", "reply", "elapsed", "is_copied")
SHOWN_OF_STEPS = (
    "index",
    "status",
    "observation",
    "value",
    "elapsed",
    "usage",
    "is_copied",
)
"""What replaying them needs."""


@dataclass
class Record:
    """The rows of a run as answers; whoever drives the engine takes them one by one."""

    spec: AgentSpec
    turns: tuple[Turn, ...]
    resumes: tuple[ResumePoint, ...]
    calls: list[ModelCall]
    """Replies still to be given again, in order; those set aside are not among them."""
    steps: dict[int, AgentStep]
    inputs: dict[str, Any]
    copies_are_free: bool = True
    """Whether copied calls use up nothing of the limits, as it is in a fork."""

    def take_reply(self, effect: CallModel) -> tuple[ModelCall, ModelAnswered] | None:
        """Return the recorded reply to `effect`; None where the record ends."""
        if not self.calls:
            return None
        call = self.calls[0]
        if (call.purpose, call.at_index) != (effect.purpose, effect.at_index):
            return None
        del self.calls[0]
        reply = Reply.model_validate(call.reply)
        if call.is_copied and self.copies_are_free:
            reply = reply.model_copy(update={"usage": Usage()})
            return call, ModelAnswered(reply)
        return call, ModelAnswered(reply, call.elapsed)


def record_before(call: ModelCall) -> Record:
    """Read what led to `call`, under the spec it was made with."""
    record = read_record(call.run, before=call.number)
    if call.is_copied:
        record.copies_are_free = False
        record.inputs = inputs_then(call)
        if call.spec is not None:
            record.spec = spec_of(call.spec)
    return record


def read_record(run: Run, *, before: int | None = None) -> Record:
    """Read what has happened in `run`; with `before`, only up to that model call."""
    if before is None and is_fresh(run):
        return Record(spec_of(run.spec), turns_of(run), (), [], {}, run.inputs)
    resumes = [r for r in Resume.objects.filter(run=run) if _counts(r, before)]
    rows = ModelCall.objects.filter(run=run).order_by("number")
    steps = AgentStep.objects.filter(run=run)
    if before is not None:  # a page reads it, perhaps for thousands of rows
        rows = rows.filter(number__lt=before).only(*SHOWN_OF_CALLS)
        steps = steps.filter(model_call__number__lt=before).only(*SHOWN_OF_STEPS)
    return Record(
        spec=spec_of(run.spec),
        turns=turns_of(run),
        resumes=tuple(
            ResumePoint(at_index=r.at_index, limits=r.limits) for r in resumes
        ),
        calls=[call for call in rows if not is_set_aside(call, resumes)],
        steps={step.index: step for step in steps},
        inputs=run.inputs,
    )


def inputs_then(call: ModelCall) -> dict[str, Any]:
    """Return the inputs that a reused call was asked with, perhaps in another run."""
    earlier: list[tuple[int, dict[str, Any]]] = call.run.earlier_inputs or []
    return next((old for end, old in earlier if call.number < end), call.run.inputs)


def is_fresh(run: Run) -> bool:
    """Whether a claimed run was never another worker's and begins at its beginning."""
    return run.fence == 1 and run.next_number == 0


def _counts(resume: Resume, before: int | None) -> bool:
    return before is None or resume.at_number <= before


def is_set_aside(call: ModelCall, resumes: list[Resume]) -> bool:
    """Whether a resume dropped this reply: it had led to the end, not to a step."""
    return any(
        call.at_index == resume.at_index and call.number < resume.at_number
        for resume in resumes
    )


def turns_of(run: Run) -> tuple[Turn, ...]:
    """Return the earlier turns that were chosen when the run began."""
    if not run.turn_ids:
        return ()
    rows = {turn.pk: turn for turn in Run.objects.filter(pk__in=run.turn_ids)}
    found = (rows[pk] for pk in run.turn_ids if pk in rows)
    seen_at = run.turns_seen_at or run.started_at
    return tuple(turn_of(turn, seen_at=seen_at) for turn in found)


def turn_of(run: Run, *, seen_at: datetime | None = None) -> Turn:
    """Return what the model is told of an earlier run; only a success has an answer.

    With `seen_at`, as it was then: a stopped turn that a person resumed later does not
    change the prompts of the runs that came after it.
    """
    answer = run.output if run.status == Run.Status.SUCCEEDED else None
    if seen_at is not None and run.ended_at is not None and run.ended_at > seen_at:
        answer = None
    if answer is not None and not isinstance(answer, str):
        answer = text_of(answer)
    return Turn(question=question_of(run.inputs), answer=answer)


def question_of(inputs: dict[str, object]) -> str:
    """Return what a person asked: the variable `input`, else the first one."""
    value = inputs.get("input", next(iter(inputs.values()), ""))
    return str(value)


def result_of(step: AgentStep) -> ToolResult:
    """Return what the engine is told of an answered step."""
    used = step.usage or {}
    return ToolResult(
        observation=step.observation,
        failed=step.has_failed,
        value=step.value,
        elapsed=step.elapsed or 0.0,
        is_copied=step.is_copied,
        tokens=used.get("tokens", 0),
        cost=used.get("cost", 0.0),
    )


class Failed(NamedTuple):
    """The failed attempts of one model call that are on record."""

    number: int
    since_resume: int
    """Those after the last resume; the others do not count against the call."""
    seconds: float
    """Working time of those after the last resume."""


def failed_attempts(run: Run, number: int) -> Failed:
    """Return what is on record of attempts at one model call."""
    attempts = list(ModelAttempt.objects.filter(run=run, number=number))
    resume = Resume.objects.filter(run=run).last() if attempts else None
    recent = [a for a in attempts if resume is None or a.started_at > resume.at]
    return Failed(len(attempts), len(recent), sum(a.elapsed for a in recent))
