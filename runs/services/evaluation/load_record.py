"""The record of a run: everything an evaluator may know, read in two queries."""

from collections.abc import Iterable

from runs.evaluation.types import EvaluationRecord, RecordedStep
from runs.models import AgentStep, ModelCall, Run

STEP_FIELDS = (
    *("round", "tool", "tool_input", "observation", "status", "elapsed", "answered_by"),
)


def load_evaluation_record(run: Run) -> EvaluationRecord:
    """Return the record of a run as it is now."""
    calls = ModelCall.objects.filter(run=run).order_by("number")
    steps = list(AgentStep.objects.filter(run=run).only(*STEP_FIELDS).order_by("index"))
    times = list(calls.values_list("elapsed", "first_token"))
    model_seconds = sum(elapsed for elapsed, _ in times)
    return EvaluationRecord(
        status=run.status,
        stop_reason=run.stop_reason,
        error_code=run.error_code,
        error_message=run.error_message,
        inputs=run.inputs,
        answer=run.answer,
        output=run.output,
        steps=tuple(build_recorded_step(step) for step in steps),
        rounds=run.rounds,
        model_calls=run.model_calls,
        input_tokens=run.input_tokens,
        output_tokens=run.output_tokens,
        cost=float(run.cost),
        seconds=round(model_seconds + sum_tool_seconds(steps), 4),
        first_token=times[0][1] if times else None,
    )


def build_recorded_step(step: AgentStep) -> RecordedStep:
    return RecordedStep(
        tool=step.tool,
        tool_input=step.tool_input,
        observation=step.observation,
        status=step.status,
        failed=step.has_failed,
        answered_by=step.answered_by,
    )


def sum_tool_seconds(steps: Iterable[AgentStep]) -> float:
    """Return the time of all calls; those of a round run side by side."""
    longest: dict[int, float] = {}
    for step in steps:
        longest[step.round] = max(longest.get(step.round, 0.0), step.elapsed or 0.0)
    return sum(longest.values())
