"""What evaluators request: the boundary between them and the world.

An evaluator that needs more than the record of a run is a generator. It yields an
effect and is sent its outcome:

    AskModel    -> ModelAnswered
    RunCode     -> CodeReturned
    FindSecrets -> SecretsFound

A driver that cannot perform an effect throws `NotScored` into the generator.
"""

from collections.abc import Generator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from runs.engine.types import Message
from runs.evaluation.types import ScoreResult


@dataclass(frozen=True)
class JudgeModel:
    provider: str
    """Slug."""
    model: str
    parameters: dict[str, Any]


@dataclass(frozen=True)
class AskModel:
    """Call a model once."""

    judge: JudgeModel
    messages: tuple[Message, ...]
    output_schema: dict[str, Any]
    """What the reply should be; not every model obeys."""


@dataclass(frozen=True)
class ModelAnswered:
    text: str
    cost: Decimal = Decimal(0)


@dataclass(frozen=True)
class RunCode:
    """Run Python in the sandbox; its value is that of the last expression."""

    code: str
    variables: dict[str, Any]
    seconds: float


@dataclass(frozen=True)
class CodeReturned:
    value: Any


@dataclass(frozen=True)
class FindSecrets:
    """Search texts for the secrets that the run could have known."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class SecretsFound:
    count: int
    """How many of the texts contain one."""


EvaluatorEffect = AskModel | RunCode | FindSecrets
EvaluatorOutcome = ModelAnswered | CodeReturned | SecretsFound
AskingEvaluation = Generator[EvaluatorEffect, EvaluatorOutcome, ScoreResult]
