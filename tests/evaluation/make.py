"""Values for tests of evaluators."""

from typing import Any

from runs.evaluation.registry import score_record
from runs.evaluation.types import (
    EvaluationExample,
    EvaluationRecord,
    ExpectedCall,
    RecordedStep,
    ScoreResult,
)


def score(
    kind: str,
    answer: Any,
    expected: str = "",
    *,
    record: EvaluationRecord | None = None,
    example: EvaluationExample | None = None,
    baseline: EvaluationRecord | None = None,
    perform: Any = None,
    **config: Any,
) -> ScoreResult:
    """Score an answer; settings of the evaluator are the other arguments."""
    more = {"perform": perform} if perform else {}
    return score_record(
        kind,
        config,
        example or EvaluationExample(expected_answer=expected),
        record or EvaluationRecord(answer=answer, output=answer),
        baseline=baseline,
        **more,
    )


def make_step(tool: str, tool_input: Any = None, **more: Any) -> RecordedStep:
    return RecordedStep(tool=tool, tool_input=tool_input, **more)


def make_record(*steps: RecordedStep, **more: Any) -> EvaluationRecord:
    return EvaluationRecord(answer="done", output="done", steps=steps, **more)


def make_expected(*calls: tuple[str, dict[str, Any] | None]) -> EvaluationExample:
    return EvaluationExample(
        expected_calls=tuple(
            ExpectedCall(tool=tool, tool_input=given) for tool, given in calls
        )
    )
