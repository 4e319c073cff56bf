"""What a kind of evaluator is made of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from runs.engine.types import FrozenModel
from runs.evaluation.effects import AskingEvaluation
from runs.evaluation.types import EvaluationExample, EvaluationRecord, ScoreResult

EvaluatorNeeds = Literal["nothing", "sandbox", "secrets", "model"]
"""What a score takes besides the record of the run."""


class EvaluatorConfig(FrozenModel):
    """The settings of an evaluator; each kind has its own."""


@dataclass(frozen=True)
class EvaluationInput:
    example: EvaluationExample
    record: EvaluationRecord
    baseline: EvaluationRecord | None = None
    """The run of the baseline for the same example; pairwise kinds need it."""


@dataclass(frozen=True)
class EvaluatorKind:
    """A way to score a run: pure, or asking for what it needs."""

    name: str
    config_model: type[EvaluatorConfig]
    evaluate: Callable[[Any, EvaluationInput], ScoreResult | AskingEvaluation]
    """Gets a `config_model` and the input; raises `NotScored` with a reason."""
    needs: EvaluatorNeeds = "nothing"
