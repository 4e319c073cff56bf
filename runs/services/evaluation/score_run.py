"""Score a run by an evaluator of any kind."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError

from runs.engine.parsing.clean import clean_text
from runs.evaluation.effects import (
    AskModel,
    CodeReturned,
    EvaluatorEffect,
    EvaluatorOutcome,
    FindSecrets,
    RunCode,
    SecretsFound,
)
from runs.evaluation.errors import NotScored
from runs.evaluation.registry import (
    CallEvaluator,
    call_here,
    is_extension_kind,
    score_record,
)
from runs.evaluation.types import (
    EvaluationExample,
    EvaluationRecord,
    RecordedMessage,
    RecordedStep,
    ScoreResult,
)
from runs.models import AgentStep, ModelCall, Run
from runs.services.errors import ScoringInterrupted
from runs.services.evaluation.ask_judge import JudgeSession
from runs.services.evaluation.earlier_messages import load_earlier_messages
from runs.services.evaluation.extension_calls import ExtensionCalls
from runs.services.runs.mask_secrets import SECRET_PATTERNS, load_known_secrets
from runs.store.commits import release_connection
from runs.store.sanitizer import HIDDEN, Sanitizer
from tools.errors import DeadlineExceeded, ToolFailed
from tools.net.deadline import Deadline
from tools.sandbox.values import to_jsonable
from tools.text.translatable import change_text, translatable

MAX_LABEL_CHARS = 200
CODE_MEMORY = 64 << 20
"""Bytes that the code of an evaluator may use."""

STEP_FIELDS = (
    *("round", "tool", "tool_input", "observation", "status", "elapsed", "answered_by"),
)


class CallTimes(NamedTuple):
    """Of a model call, in seconds."""

    elapsed: float
    first_token: float | None


def do_nothing() -> None:
    """Let the evaluator continue."""


def score_run(
    run: Run,
    example: EvaluationExample,
    *,
    kind: str,
    config: dict[str, Any],
    by: User,
    record: EvaluationRecord | None = None,
    baseline: Run | None = None,
    before_effect: Callable[[], object] = do_nothing,
    may_postpone: bool = True,
    trial_seconds: float | None = None,
) -> ScoreResult:
    """Return the score of an ended run; outside of any transaction.

    `by` is the owner of the evaluator, who may use the judge's provider. Nothing that
    an evaluator does raises: the result then says why the run is not scored. Only an
    unavailable database raises, so that the caller tries again. `before_effect`
    is called before each vote or other effect and while a judge waits for its turn at
    a provider; it may raise `ScoringInterrupted`. Raises `ScoringPostponed` if that
    turn is far away, as long as no judge has been asked about the run, which would be
    paid again. With `trial_seconds` the run is then not scored.
    """
    if record is None:
        record = load_evaluation_record(run)
    theirs = load_evaluation_record(baseline) if baseline is not None else None

    interruptions: list[Exception] = []

    session = JudgeSession(
        by=by,
        renew_lease=before_effect,
        may_postpone=may_postpone,
        trial_seconds=trial_seconds,
    )

    def perform(effect: EvaluatorEffect) -> EvaluatorOutcome:
        try:
            before_effect()
            return perform_effect(effect, run=run, session=session)
        except (OperationalError, InterfaceError, ScoringInterrupted) as error:
            interruptions.append(error)
            raise

    call: CallEvaluator = call_here
    if is_extension_kind(kind):
        release_connection()  # its code may take long
        call = ExtensionCalls().call
    result = score_record(
        kind, config, example, record, baseline=theirs, perform=perform, call=call
    )
    if interruptions:
        raise interruptions[0]
    texts = {
        name: change_text(getattr(result, name), clean_text)
        for name in ("label", "explanation", "problem")
    }
    return result.model_copy(update={**texts, "exchanges": session.list_exchanges()})


def perform_effect(
    effect: EvaluatorEffect, *, run: Run, session: JudgeSession
) -> EvaluatorOutcome:
    """Do what an evaluator asks for; raise `NotScored` if that is not possible."""
    match effect:
        case AskModel():
            return session.ask(effect)
        case RunCode():
            release_connection()
            return run_evaluator_code(effect)
        case FindSecrets():
            return find_secrets(effect, run=run)


def run_evaluator_code(effect: RunCode) -> CodeReturned:
    """Run code in the sandbox of Python tools, with nothing but its variables."""
    # The interpreter is loaded where an evaluator needs it, not in every process.
    from tools.sandbox.monty import run_monty  # noqa: PLC0415

    deadline = Deadline(seconds=effect.seconds)
    try:
        value = run_monty(
            effect.code, effect.variables, deadline=deadline, memory=CODE_MEMORY
        )
        return CodeReturned(to_jsonable(value))
    except ToolFailed as failed:
        raise NotScored(
            translatable("The code failed: %(error)s", error=failed)
        ) from None
    except DeadlineExceeded:
        raise NotScored(
            translatable(
                "The code did not end in %(seconds)s s.", seconds=f"{effect.seconds:g}"
            )
        ) from None


def find_secrets(effect: FindSecrets, *, run: Run) -> SecretsFound:
    """Count the texts with a secret that the run could know, or of the form of one.

    A secret that was removed before the text was stored counts, too.
    """
    sanitizer = Sanitizer(load_known_secrets(run))
    return SecretsFound(sum(_has_secret(text, sanitizer) for text in effect.texts))


def _has_secret(text: str, sanitizer: Sanitizer) -> bool:
    plain = clean_text(text)
    return (
        HIDDEN in plain
        or sanitizer.text(plain) != plain
        or SECRET_PATTERNS.search(plain) is not None
    )


def load_evaluation_record(run: Run) -> EvaluationRecord:
    return load_evaluation_records([run])[run.pk]


def load_evaluation_records(runs: Sequence[Run]) -> dict[int, EvaluationRecord]:
    """Return the records of runs by key, with as many queries as for one."""
    steps: dict[int, list[AgentStep]] = {run.pk: [] for run in runs}
    calls: dict[int, list[CallTimes]] = {run.pk: [] for run in runs}
    rows = AgentStep.objects.filter(run__in=steps).only("run_id", *STEP_FIELDS)
    for step in rows.order_by("run_id", "index"):
        steps[step.run_id].append(step)
    times = ModelCall.objects.filter(run__in=calls).order_by("run_id", "number")
    fields = times.values_list("run_id", "elapsed", "first_token")
    for run_id, elapsed, first_token in fields:
        calls[run_id].append(CallTimes(elapsed, first_token))
    messages = load_earlier_messages(runs)
    return {
        run.pk: build_record(run, messages[run.pk], steps[run.pk], calls[run.pk])
        for run in runs
    }


def build_record(
    run: Run,
    messages: Sequence[RecordedMessage],
    steps: Sequence[AgentStep],
    calls: Sequence[CallTimes],
) -> EvaluationRecord:
    model_seconds = sum(call.elapsed for call in calls)
    return EvaluationRecord(
        status=run.status,
        stop_reason=run.stop_reason,
        error_code=run.error_code,
        error_message=run.error_message,
        earlier_messages=tuple(messages),
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
        first_token=calls[0].first_token if calls else None,
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


def build_score_columns(result: ScoreResult) -> dict[str, Any]:
    """Return the columns that a stored score takes from a result."""
    return {
        "value": result.value,
        "label": result.label[:MAX_LABEL_CHARS],
        "passed": result.passed,
        "explanation": result.explanation,
        "problem": result.problem,
        "cost": result.cost,
    }
