"""The executor: a loop that asks for model and tool calls, and does no I/O itself."""

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from runs.engine.check import refusal_of
from runs.engine.effects import CallTools, Effect, Outcome
from runs.engine.rounds import Rounds
from runs.engine.types import AgentSpec, Result, ResumePoint, RunError, StopReason, Turn


def execute(
    spec: AgentSpec,
    inputs: Mapping[str, Any],
    *,
    turns: Sequence[Turn] = (),
    resumes: Sequence[ResumePoint] = (),
) -> Generator[Effect, Outcome, Result]:
    """Run an agent: yield what is to be done, be sent what came of it, return the end.

    Every reply that leads to steps yields one `CallTools`, answered steps included, so
    that a driver can store reply and steps together.
    """
    if (refusal := refusal_of(spec, inputs)) is not None:
        return refusal
    run = Rounds(spec, inputs, turns=turns, resumes=resumes)
    while (end := run.progress.end()) is None:
        asked = run.ask()
        reply = run.hear(asked, (yield asked))
        if reply is None:
            continue
        decision = run.decide(reply)
        if isinstance(decision, CallTools):
            decision = run.record(reply, decision, (yield decision))
        if decision is not None:
            return decision
    if isinstance(end, RunError):
        return Result(status="failed", error=end)
    return (yield from _stop(run, end))


def _stop(run: Rounds, reason: StopReason) -> Generator[Effect, Outcome, Result]:
    """End a run at a limit, with one last request where the agent wants it (R11)."""
    asked = run.ask_last(reason)
    if asked is None:
        return run.stopped(reason)
    return run.stopped(reason, (yield asked))
