"""Driving the engine through what is on record, without asking anybody."""

from collections.abc import Callable

from runs.engine.effects import CallModel, CallTools, Effect, ToolsAnswered
from runs.engine.executor import execute
from runs.models import Run
from runs.services.record import Record, result_of


def replay(
    run: Run, record: Record, *, passed: Callable[[CallModel], object] | None = None
) -> Effect | None:
    """Return the first effect that `record` has no outcome for; None if it all ends.

    The record is used up on the way; `passed` is told each model call that it answers.
    """
    loop = execute(
        record.spec, record.inputs, turns=record.turns, resumes=record.resumes
    )
    try:
        effect = next(loop)
        while True:
            if isinstance(effect, CallModel):
                answered = record.take_reply(effect)
                if answered is None:
                    return effect
                if passed is not None:
                    passed(effect)
                effect = loop.send(answered[1])
            elif any(step.index not in record.steps for step in effect.steps):
                return effect
            else:
                effect = loop.send(_answers(effect, record))
    except StopIteration:
        return None


def _answers(effect: CallTools, record: Record) -> ToolsAnswered:
    rows = (record.steps[step.index] for step in effect.steps)
    return ToolsAnswered(tuple(result_of(row) for row in rows))
