"""Replay a run: drive the engine with recorded outcomes only."""

from collections.abc import Callable

from runs.engine.effects import CallModel, CallTools, Effect, ToolsFinished
from runs.engine.executor import run_agent_loop
from runs.models import Run
from runs.store.history import RunHistory, build_tool_results


def replay_history(
    run: Run, record: RunHistory, *, passed: Callable[[CallModel], object] | None = None
) -> Effect | None:
    """Return the first effect without a recorded outcome; None at the run's end.

    The history is consumed; `passed` is called with each model call that it
    answers.
    """
    loop = run_agent_loop(
        record.spec, record.inputs, turns=record.turns, resumes=record.resumes
    )
    try:
        effect = next(loop)
        while True:
            if isinstance(effect, CallModel):
                answered = record.next_reply(effect)
                if answered is None:
                    return effect
                if passed is not None:
                    passed(effect)
                effect = loop.send(answered[1])
            elif any(step.index not in record.steps for step in effect.steps):
                return effect
            else:
                effect = loop.send(_build_tools_answered(effect, record))
    except StopIteration:
        return None


def _build_tools_answered(effect: CallTools, record: RunHistory) -> ToolsFinished:
    rows = (record.steps[step.index] for step in effect.steps)
    return build_tool_results(rows, record.spec.model)
