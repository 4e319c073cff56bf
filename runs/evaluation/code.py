"""The evaluator whose score is computed by code of its author, in the sandbox."""

import ast
import math
from typing import Any

from pydantic import Field, field_validator

from runs.evaluation.effects import AskingEvaluation, CodeReturned, RunCode
from runs.evaluation.errors import InvalidScore
from runs.evaluation.kind import EvaluationInput, EvaluatorConfig, EvaluatorKind
from runs.evaluation.types import ScoreResult
from tools.text.translatable import translatable

MAX_CODE = 50_000
"""Characters."""

CALL_OF_SCORE = "\n\nscore(example, run)\n"
FIELDS_OF_SCORE = {"value", "label", "passed", "explanation"}
MAX_TEXT = 5_000
"""Characters of an explanation that are kept."""


class CodeConfig(EvaluatorConfig):
    """Python with `def score(example, run)`.

    It returns true or false, a number from 0 to 1, a label, or a dictionary of value,
    label, passed and explanation.
    """

    code: str = Field(min_length=1, max_length=MAX_CODE)
    threshold: float = Field(default=0.5, ge=0, le=1, allow_inf_nan=False)
    """The number from which a run passes."""
    timeout: float = Field(default=5.0, gt=0, le=60, allow_inf_nan=False)
    """Seconds."""

    @field_validator("code")
    @classmethod
    def _check_code(cls, code: str) -> str:
        try:
            tree = ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            why = getattr(error, "msg", error)
            raise ValueError(
                translatable("Line %(line)s: %(error)s.", line=line, error=why)
                if line
                else str(why)
            ) from None
        functions = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
        wanted = [one for one in functions if one.name == "score"]
        if not wanted or len(wanted[-1].args.posonlyargs + wanted[-1].args.args) != 2:
            raise ValueError(
                translatable("Define a function: def score(example, run).")
            )
        return code


def evaluate_code(config: CodeConfig, given: EvaluationInput) -> AskingEvaluation:
    """Run the code with both values as dictionaries."""
    variables = {
        "example": given.example.model_dump(mode="json"),
        "run": given.record.model_dump(mode="json"),
    }
    code = config.code.rstrip() + CALL_OF_SCORE
    returned = yield RunCode(code, variables, config.timeout)
    if not isinstance(returned, CodeReturned):
        raise InvalidScore(translatable("The code had no result."))
    return read_score(returned.value, threshold=config.threshold)


def read_score(value: Any, *, threshold: float) -> ScoreResult:
    """Return what code or a model has said as a score; raise `InvalidScore`."""
    if isinstance(value, bool):
        return ScoreResult.of_pass(value)
    if isinstance(value, int | float):
        return ScoreResult.of_value(require_fraction(value), threshold=threshold)
    if isinstance(value, str) and value.strip():
        return ScoreResult(label=value.strip()[:MAX_TEXT])
    if isinstance(value, dict):
        return _read_fields(value, threshold)
    raise InvalidScore(
        translatable(
            "The score must be true or false, a number from 0 to 1, a text or a "
            "dictionary, not %(type)s.",
            type=type(value).__name__,
        )
    )


def _read_fields(value: dict[str, Any], threshold: float) -> ScoreResult:
    unknown = sorted(str(name) for name in value.keys() - FIELDS_OF_SCORE)
    if unknown:
        raise InvalidScore(
            translatable(
                "The score has the unknown field %(field)s.", field=repr(unknown[0])
            )
        )
    number, passed = value.get("value"), value.get("passed")
    label, why = value.get("label") or "", value.get("explanation") or ""
    if isinstance(number, bool):
        number = float(number)
    if number is not None and not isinstance(number, int | float):
        raise InvalidScore(
            translatable("The field 'value' must be a number from 0 to 1.")
        )
    if passed is not None and not isinstance(passed, bool):
        raise InvalidScore(translatable("The field 'passed' must be true or false."))
    if not isinstance(label, str) or not isinstance(why, str):
        raise InvalidScore(
            translatable("The fields 'label' and 'explanation' must be texts.")
        )
    if number is None and passed is None and not label:
        raise InvalidScore(translatable("The score needs a value, a label or passed."))
    if number is None and passed is not None:
        number = float(passed)
    if number is not None:
        number = require_fraction(number)
        passed = number >= threshold if passed is None else passed
    return ScoreResult(
        value=number, passed=passed, label=label[:MAX_TEXT], explanation=why[:MAX_TEXT]
    )


def require_fraction(number: float) -> float:
    """Return a number from 0 to 1; raise `InvalidScore` for any other."""
    if not math.isfinite(number) or not 0 <= number <= 1:
        raise InvalidScore(
            translatable(
                "The score must be a number from 0 to 1, not %(number)s.",
                number=repr(number),
            )
        )
    return float(number)


CODE = EvaluatorKind("code", CodeConfig, evaluate_code, needs="sandbox")
