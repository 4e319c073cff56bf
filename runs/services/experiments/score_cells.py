"""Score runs of an experiment by all its evaluators."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from django.db import transaction
from django.db.models import F

from runs.evaluation.answer_text import describe_failed_run
from runs.evaluation.combine import combine_scores
from runs.evaluation.judge import compares_with_baseline
from runs.evaluation.registry import EVALUATOR_KINDS, is_extension_kind
from runs.evaluation.types import (
    EvaluationExample,
    EvaluationRecord,
    ExpectedCall,
    ScoreResult,
)
from runs.models import EvaluatorRevision, Example, ExperimentRun, Run, Score
from runs.services.errors import ScoringInterrupted, ScoringPostponed
from runs.services.evaluation.judge_requests import (
    JudgedRun,
    is_judge,
    lock_judged_runs,
    store_judge_requests,
)
from runs.services.evaluation.score_run import (
    build_score_columns,
    load_evaluation_records,
    score_run,
)
from tools.text.translatable import translatable

RUN_DELETED = translatable("The run was deleted before it was scored.")
NOT_JUDGED = translatable("The budget is used up. Enter a higher one to resume.")
"""The problem of a run that no judge was asked about."""
MAX_BATCH_SECONDS = 1.0
"""Of computing, before the scores of a batch are stored."""
MIN_POSTPONED_SECONDS = 1.0
BASELINE_SCORE = ScoreResult(value=0.5, label="baseline")
"""Of the baseline by an evaluator that compares with it: no model is asked."""


@dataclass
class ScoringTurn:
    """What the threads of one turn share."""

    before_effect: Callable[[], object]
    """Called before each vote and while it waits; may raise `ScoringInterrupted`."""
    postponed: float = 0.0
    """Seconds until the judges' provider allows a request; then the turn is over."""


def score_cells(
    cells: Sequence[ExperimentRun],
    revisions: Sequence[EvaluatorRevision],
    turn: ScoringTurn,
    *,
    with_judges: bool = True,
) -> int:
    """Store the scores of ended runs; return how many another worker did not store.

    Evaluators run outside the transaction that stores what they say. If they take
    long, the last runs are left for the next turn. Without judges, because the budget
    is used up, their scores are missing until the experiment is resumed.
    """
    records = load_evaluation_records([cell.run for cell in cells if cell.run])
    found, began = [], time.monotonic()
    for cell in cells:
        if turn.postponed:
            break
        try:
            results = evaluate_cell(
                cell, revisions, records, turn, with_judges=with_judges
            )
            found.append((cell, results))
        except ScoringPostponed as postponed:
            turn.postponed = max(postponed.seconds, MIN_POSTPONED_SECONDS)
        except ScoringInterrupted:
            break
        if time.monotonic() - began > MAX_BATCH_SECONDS:
            break
    seconds = {run: record.seconds for run, record in records.items()}
    return store_cell_scores(found, revisions, seconds)


def store_cell_scores(
    found: Sequence[tuple[ExperimentRun, list[ScoreResult]]],
    revisions: Sequence[EvaluatorRevision],
    seconds: Mapping[int, float | None],
) -> int:
    """Store the results of runs; return of how many this worker was the first."""
    judged = [
        build_judged_run(cell, cell.run_id, revision, result)
        for cell, results in found
        for revision, result in zip(revisions, results, strict=True)
        if cell.run_id is not None and is_judge(revision)
    ]
    scores: list[Score] = []
    count = 0
    with transaction.atomic():
        judged = lock_judged_runs(judged)
        for cell, results in found:
            mine = ExperimentRun.objects.filter(
                pk=cell.pk, state=ExperimentRun.State.STARTED
            )
            worked = seconds.get(cell.run_id or 0) or None  # none without a call
            if mine.update(**summarize_cell(cell.run, results, seconds=worked)):
                count += 1
                scores += map(partial(build_score, cell), revisions, results)
            else:
                judged = [one for one in judged if one.run != cell.run_id]
        Score.objects.bulk_create(scores)
        store_judge_requests(judged)
    return count


def build_judged_run(
    cell: ExperimentRun, run: int, revision: EvaluatorRevision, result: ScoreResult
) -> JudgedRun:
    """Return what is stored of a judge; nothing of a baseline deleted meanwhile."""
    if not is_comparing(revision):
        return JudgedRun(run, revision, result.exchanges)
    baseline = find_baseline(cell)
    if baseline is None or baseline.run_id is None:
        return JudgedRun(run, revision, ())
    return JudgedRun(run, revision, result.exchanges, baseline.run_id)


def evaluate_cell(
    cell: ExperimentRun,
    revisions: Sequence[EvaluatorRevision],
    records: Mapping[int, EvaluationRecord],
    turn: ScoringTurn,
    *,
    with_judges: bool = True,
) -> list[ScoreResult]:
    """Return what each evaluator says of a run."""
    run, example = cell.run, build_evaluation_example(cell.example)
    if run is None or (problem := find_run_problem(run)):
        reason = RUN_DELETED if run is None else problem
        return [ScoreResult.not_scored(reason) for _ in revisions]
    comparing = {one.pk for one in revisions if is_comparing(one)}
    baseline = find_baseline(cell) if comparing else None
    results: list[ScoreResult] = []
    for one in revisions:
        if one.pk in comparing and baseline == cell:
            results.append(BASELINE_SCORE)
            continue
        if is_judge(one) and not with_judges:
            results.append(ScoreResult.not_scored(NOT_JUDGED))
            continue
        result = score_run(
            run,
            example,
            kind=one.kind,
            config=one.config,
            by=one.evaluator.owner,
            record=records[run.pk],
            baseline=baseline.run if baseline and one.pk in comparing else None,
            before_effect=turn.before_effect,
            may_postpone=not any(each.exchanges for each in results),
        )
        results.append(result)
    return results


def needs_only_records(revision: EvaluatorRevision) -> bool:
    """Whether it computes: it asks no model and executes no code of others."""
    kind = EVALUATOR_KINDS.get(revision.kind)
    is_ours = not is_extension_kind(revision.kind)
    return kind is not None and kind.needs == "nothing" and is_ours


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
    return EvaluationExample(
        inputs=example.inputs,
        expected_answer=example.expected_answer,
        expected_calls=tuple(
            ExpectedCall.model_validate(call) for call in example.expected_calls
        ),
        tags=tuple(example.tags),
    )


def summarize_cell(
    run: Run | None, results: Sequence[ScoreResult], *, seconds: float | None
) -> dict[str, object]:
    """Return the columns; what earlier judges have cost stays part of the cost.

    `seconds` is the working time: people, limits and outages do not make a run slow.
    """
    combined = combine_scores(results)
    judges = F("judge_cost") + sum((one.cost for one in results), Decimal(0))
    return {
        "state": ExperimentRun.State.DONE,
        "run_status": run.status if run else "",
        "passed": combined.passed,
        "score": combined.value,
        "judge_cost": judges,
        "cost": judges + (run.cost if run else Decimal(0)),
        "tokens": run.input_tokens + run.output_tokens if run else 0,
        "seconds": seconds,
    }


def build_score(
    cell: ExperimentRun, revision: EvaluatorRevision, result: ScoreResult
) -> Score:
    """Return the row of a result, not stored yet."""
    columns = build_score_columns(result)
    return Score(cell=cell, revision=revision, applies=result.applies, **columns)
