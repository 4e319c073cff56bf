"""All kinds of evaluators, one line each, and how a run is scored by one."""

from collections.abc import Callable
from functools import partial
from inspect import GEN_RUNNING, getgeneratorstate
from types import GeneratorType
from typing import Any, NamedTuple, Protocol, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from runs.evaluation.code import CODE
from runs.evaluation.effects import AskingEvaluation, EvaluatorEffect, EvaluatorOutcome
from runs.evaluation.errors import (
    EvaluationError,
    NotApplicable,
    NotScored,
    describe_evaluator_error,
)
from runs.evaluation.json_answer import JSON
from runs.evaluation.judge import JUDGE
from runs.evaluation.kind import EvaluationInput, EvaluatorConfig, EvaluatorKind
from runs.evaluation.limits import LIMITS
from runs.evaluation.number import NUMBER_KIND
from runs.evaluation.safety import SAFETY
from runs.evaluation.similarity import SIMILARITY
from runs.evaluation.text_match import CONTAINS, EXACT, ONE_OF, REGEX
from runs.evaluation.tool_calls import TOOL_CALLS
from runs.evaluation.tool_rules import TOOL_RULES
from runs.evaluation.types import EvaluationExample, EvaluationRecord, ScoreResult
from tools.text.translatable import TranslatableText, join_sentences, translatable
from tools.text.validation_message import strip_value_error

EVALUATOR_KINDS: dict[str, EvaluatorKind] = {
    kind.name: kind
    for kind in (
        EXACT,
        CONTAINS,
        REGEX,
        ONE_OF,
        NUMBER_KIND,
        JSON,
        SIMILARITY,
        TOOL_CALLS,
        TOOL_RULES,
        LIMITS,
        SAFETY,
        CODE,
        JUDGE,
    )
}
BUILT_IN_KINDS = frozenset(EVALUATOR_KINDS)


def is_extension_kind(name: str) -> bool:
    return name in EVALUATOR_KINDS and name not in BUILT_IN_KINDS


def list_slow_kinds() -> list[str]:
    """Return the kinds of which a score may take from seconds to minutes."""
    slow = {"sandbox", "model"}
    return [
        name
        for name, kind in EVALUATOR_KINDS.items()
        if kind.needs in slow or is_extension_kind(name)
    ]


R = TypeVar("R")
PerformEffect = Callable[[EvaluatorEffect], EvaluatorOutcome]


class CallEvaluator(Protocol):
    """Calls the code of an evaluator."""

    def __call__(self, code: Callable[[], R], /) -> R: ...


def call_here(code: Callable[[], R], /) -> R:
    """Call code of Agentsite, which may be trusted to end."""
    return code()


class ConfigProblem(NamedTuple):
    """What is wrong with one field of an evaluator; empty for the whole."""

    field: str
    message: str


def validate_evaluator_config(kind: str, config: dict[str, Any]) -> list[ConfigProblem]:
    """Return what is wrong with the settings of an evaluator; empty if nothing is."""
    known = EVALUATOR_KINDS.get(kind)
    if known is None:
        return [
            ConfigProblem(
                "kind", translatable("The kind %(kind)s is unknown.", kind=repr(kind))
            )
        ]
    try:
        known.config_model.model_validate(config)
    except ValidationError as error:
        return [
            ConfigProblem(
                ".".join(str(part) for part in one["loc"]),
                read_validation_message(one),
            )
            for one in error.errors(include_url=False)
        ]
    return []


def read_validation_message(error: ErrorDetails) -> str:
    """Return the sentence of a validator, which pages translate, or of pydantic."""
    raised = error.get("ctx", {}).get("error")
    if isinstance(raised, ValueError):
        said = str(raised)
        if isinstance(said, TranslatableText):
            return said
    return f"{strip_value_error(error['msg'])}."


def load_evaluator_config(kind: str, config: dict[str, Any]) -> EvaluatorConfig:
    """Return stored settings; raise `EvaluationError` if they are not valid now."""
    problems = validate_evaluator_config(kind, config)
    if problems:
        field, message = problems[0]
        raise EvaluationError(join_sentences([f"{field}:" if field else "", message]))
    return EVALUATOR_KINDS[kind].config_model.model_validate(config)


def refuse_effect(effect: EvaluatorEffect) -> EvaluatorOutcome:
    """Raise `NotScored`: nothing but the record of the run is at hand."""
    raise NotScored(translatable("This kind of evaluator needs more than the run."))


def score_record(
    kind: str,
    config: dict[str, Any],
    example: EvaluationExample,
    record: EvaluationRecord,
    *,
    baseline: EvaluationRecord | None = None,
    perform: PerformEffect = refuse_effect,
    call: CallEvaluator = call_here,
) -> ScoreResult:
    """Return the score; never raises.

    `call` calls the code of the kind; it may raise `NotScored` in its place. `perform`
    does what a kind with `needs` asks for, and raises `NotScored` if it cannot.
    Whatever goes wrong, the run is not scored, and the result says why.
    """
    try:
        settings = call(partial(load_evaluator_config, kind, config))
        given = EvaluationInput(example, record, baseline)
        result = call(partial(EVALUATOR_KINDS[kind].evaluate, settings, given))
        if isinstance(result, GeneratorType):
            result = drive_evaluation(result, perform, call)
    except NotApplicable as reason:
        return ScoreResult.not_scored(str(reason), applies=False)
    except EvaluationError as reason:
        return ScoreResult.not_scored(str(reason))
    except Exception as error:  # noqa: BLE001  (boundary to evaluators of others)
        return ScoreResult.not_scored(describe_evaluator_error(error))
    return check_result(result)


def drive_evaluation(
    asking: AskingEvaluation, perform: PerformEffect, call: CallEvaluator
) -> ScoreResult:
    """Perform each effect that an evaluator asks for; return its score."""
    try:
        effect = call(partial(next, asking))
        while True:
            try:
                outcome = perform(effect)
            except EvaluationError as reason:
                effect = call(partial(asking.throw, reason))
            else:
                effect = call(partial(asking.send, outcome))
    except StopIteration as end:
        result: ScoreResult = end.value
        return result
    finally:
        # one that was left behind cannot be closed
        if getgeneratorstate(asking) != GEN_RUNNING:
            call(asking.close)


def check_result(result: Any) -> ScoreResult:
    """Return `result`; not scored if an extension answered with something else."""
    if isinstance(result, ScoreResult):
        return result
    return ScoreResult.not_scored(
        translatable(
            "The evaluator answered with %(type)s, not with a score.",
            type=type(result).__name__,
        )
    )
