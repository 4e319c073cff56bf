"""Score one run of an experiment by all its evaluators."""

from collections.abc import Sequence
from decimal import Decimal
from statistics import fmean

from django.db import transaction

from runs.evaluation.answer_text import describe_failed_run
from runs.evaluation.judge import compares_with_baseline
from runs.evaluation.types import EvaluationExample, ExpectedCall, ScoreResult
from runs.models import EvaluatorRevision, Example, ExperimentRun, Run, Score
from runs.services.evaluation.score_run import score_run
from tools.text.translatable import translatable

RUN_DELETED = translatable("The run was deleted before it was scored.")
MAX_LABEL_CHARS = 200
BASELINE_SCORE = ScoreResult(value=0.5, label="baseline")
"""Of the baseline by an evaluator that compares with it: no model is asked."""


def score_cell(cell: ExperimentRun, revisions: Sequence[EvaluatorRevision]) -> bool:
    """Store the scores of an ended run; False if another worker did.

    Evaluators run outside the transaction that stores what they say.
    """
    run, example = cell.run, build_evaluation_example(cell.example)
    comparing = {one.pk for one in revisions if is_comparing(one)}
    baseline = find_baseline(cell) if comparing else None
    if run is None or (problem := find_run_problem(run)):
        reason = RUN_DELETED if run is None else problem
        results = [ScoreResult.not_scored(reason) for _ in revisions]
    else:
        results = [
            BASELINE_SCORE
            if one.pk in comparing and baseline == cell
            else score_run(
                run,
                example,
                kind=one.kind,
                config=one.config,
                by=one.evaluator.owner,
                baseline=baseline.run if baseline and one.pk in comparing else None,
            )
            for one in revisions
        ]
    with transaction.atomic():
        mine = ExperimentRun.objects.filter(
            pk=cell.pk, state=ExperimentRun.State.STARTED
        )
        if not mine.update(**summarize_cell(run, results)):
            return False
        Score.objects.bulk_create(
            build_score(cell, revision, result)
            for revision, result in zip(revisions, results, strict=True)
        )
    return True


def is_comparing(revision: EvaluatorRevision) -> bool:
    """Whether it compares each answer with that of the baseline."""
    return compares_with_baseline(revision.kind, revision.config)


def find_baseline(cell: ExperimentRun) -> ExperimentRun | None:
    """Return the run of the first candidate for the same example and repetition."""
    rows = ExperimentRun.objects.filter(
        experiment=cell.experiment_id,
        example=cell.example_id,
        repetition=cell.repetition,
        candidate__position=0,
    )
    return rows.select_related("run").first()


def find_run_problem(run: Run) -> str:
    """Return why a run without an answer is not scored: that is never a score of 0."""
    if run.status in (Run.Status.FAILED, Run.Status.CANCELED):
        return describe_failed_run(run)
    return ""


def build_evaluation_example(example: Example) -> EvaluationExample:
    """Return the example as evaluators know it."""
    return EvaluationExample(
        inputs=example.inputs,
        expected_answer=example.expected_answer,
        expected_calls=tuple(
            ExpectedCall.model_validate(call) for call in example.expected_calls
        ),
        tags=tuple(example.tags),
    )


def summarize_cell(
    run: Run | None, results: Sequence[ScoreResult]
) -> dict[str, object]:
    """Return the columns of an ended cell."""
    decided = [one.passed for one in results if one.passed is not None]
    values = [one.value for one in results if one.value is not None]
    cost = sum((one.cost for one in results), Decimal(0))
    return {
        "state": ExperimentRun.State.DONE,
        "run_status": run.status if run else "",
        "passed": all(decided) if decided else None,
        "score": fmean(values) if values else None,
        "cost": cost + (run.cost if run else 0),
        "tokens": run.input_tokens + run.output_tokens if run else 0,
        "seconds": get_run_seconds(run) if run else None,
    }


def get_run_seconds(run: Run) -> float | None:
    """Return the time from its start to its end."""
    if run.started_at is None or run.ended_at is None:
        return None
    return (run.ended_at - run.started_at).total_seconds()


def build_score(
    cell: ExperimentRun, revision: EvaluatorRevision, result: ScoreResult
) -> Score:
    """Return the row of a result, not stored yet."""
    return Score(
        cell=cell,
        revision=revision,
        value=result.value,
        label=result.label[:MAX_LABEL_CHARS],
        passed=result.passed,
        explanation=result.explanation,
        problem=result.problem,
        cost=result.cost,
    )
