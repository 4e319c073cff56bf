"""The executor: a loop that requests model and tool calls, and does no I/O itself."""

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from runs.engine.effects import CallTools, Effect, Outcome
from runs.engine.rounds import RunRounds
from runs.engine.spec_validation import find_start_failure
from runs.engine.types import (
    AgentResult,
    AgentSpec,
    HistoryTurn,
    ResumePoint,
    RunError,
    StopReason,
)


def run_agent_loop(
    spec: AgentSpec,
    inputs: Mapping[str, Any],
    *,
    turns: Sequence[HistoryTurn] = (),
    resumes: Sequence[ResumePoint] = (),
) -> Generator[Effect, Outcome, AgentResult]:
    """Run an agent: yield each effect, receive its outcome, return the result.

    Every reply that leads to steps yields one `CallTools`, answered steps included, so
    that a driver can store reply and steps together.
    """
    if (refusal := find_start_failure(spec, inputs)) is not None:
        return refusal
    run = RunRounds(spec, inputs, turns=turns, resumes=resumes)
    while (end := run.progress.find_end_reason()) is None:
        asked = run.next_model_call()
        reply = run.read_reply(asked, (yield asked))
        if reply is None:
            continue
        decision = run.decide(reply)
        if isinstance(decision, CallTools):
            decision = run.record_round(reply, decision, (yield decision))
        if decision is not None:
            return decision
    if isinstance(end, RunError):
        return AgentResult(status="failed", error=end)
    return (yield from _finish_at_limit(run, end))


def _finish_at_limit(
    run: RunRounds, reason: StopReason
) -> Generator[Effect, Outcome, AgentResult]:
    """End a run at a limit, with one last request if the agent wants it (R11)."""
    asked = run.final_model_call(reason)
    if asked is None:
        return run.build_limit_result(reason)
    return run.build_limit_result(reason, (yield asked))
