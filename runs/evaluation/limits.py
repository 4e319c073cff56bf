"""The evaluator of limits: what a run may use."""

from typing import NamedTuple, Self

from pydantic import Field, model_validator

from runs.evaluation.errors import NotScored
from runs.evaluation.kind import EvaluationInput, EvaluatorConfig, EvaluatorKind
from runs.evaluation.types import ScoreResult
from tools.text.translatable import join_sentences, translatable


class LimitsConfig(EvaluatorConfig):
    """Limits of usage; the score is the part that is kept."""

    tokens: int | None = Field(default=None, ge=0)
    """Input and output tokens together."""
    cost: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    rounds: int | None = Field(default=None, ge=0)
    model_calls: int | None = Field(default=None, ge=0)
    seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Working time."""
    first_token: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Seconds to the first text of the first model call."""

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        if all(value is None for value in self.model_dump().values()):
            raise ValueError(translatable("Enter at least one limit."))
        return self


class UsedLimit(NamedTuple):
    name: str
    used: float
    limit: float


def score_limits(config: LimitsConfig, given: EvaluationInput) -> ScoreResult:
    used = measure_limits(config, given)
    over = [one for one in used if one.used > one.limit]
    return ScoreResult(
        value=1 - len(over) / len(used),
        passed=not over,
        explanation=join_sentences(map(describe_used_limit, over)),
    )


def describe_used_limit(used: UsedLimit) -> str:
    values = {"used": f"{used.used:g}", "limit": f"{used.limit:g}"}
    match used.name:
        case "tokens":
            return translatable("Tokens: %(used)s, at most %(limit)s.", **values)
        case "cost":
            return translatable("Cost: %(used)s, at most %(limit)s.", **values)
        case "rounds":
            return translatable("Rounds: %(used)s, at most %(limit)s.", **values)
        case "model_calls":
            return translatable("Model calls: %(used)s, at most %(limit)s.", **values)
        case "seconds":
            return translatable(
                "Working time: %(used)s s, at most %(limit)s s.", **values
            )
        case _:
            return translatable(
                "Time to the first token: %(used)s s, at most %(limit)s s.", **values
            )


def measure_limits(config: LimitsConfig, given: EvaluationInput) -> list[UsedLimit]:
    """Return each limit with what was used; raise `NotScored` if that is unknown."""
    record = given.record
    measured: dict[str, float | None] = {
        "tokens": record.tokens,
        "cost": record.cost,
        "rounds": record.rounds,
        "model_calls": record.model_calls,
        "seconds": record.seconds,
        "first_token": record.first_token,
    }
    found: list[UsedLimit] = []
    for name, limit in config.model_dump().items():
        if limit is None:
            continue
        value = measured[name]
        if value is None:
            raise NotScored(
                translatable(
                    "It is not known what the run used of %(name)s.", name=repr(name)
                )
            )
        found.append(UsedLimit(name, value, limit))
    return found


LIMITS = EvaluatorKind("limits", LimitsConfig, score_limits)
