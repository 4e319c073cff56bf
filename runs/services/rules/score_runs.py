"""Score the runs that rules have selected, within the budget of the day.

One worker at a time has a rule. The transaction that stores the scores also sends a
failing run on, so that each happens once, whatever dies.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import NamedTuple

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q, Sum
from django.db.models.functions import Now

from runs.evaluation.combine import combine_scores
from runs.evaluation.registry import list_slow_kinds
from runs.evaluation.types import EvaluationExample, ScoreResult
from runs.models import (
    Evaluator,
    EvaluatorRevision,
    Run,
    RunScore,
    ScoredRun,
    ScoringRule,
)
from runs.services.errors import ScoringInterrupted, ScoringPostponed
from runs.services.evaluation.judge_requests import (
    JudgedRun,
    is_judge,
    lock_judged_runs,
    store_judge_requests,
)
from runs.services.evaluation.score_run import build_score_columns, score_run
from runs.services.rules.send_on import send_failing_run
from runs.store.database_clock import db_time_from_now, read_database_time
from tools.text.translatable import translatable

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=300)
"""More than one vote of a judge may take; it is renewed before each of them."""
MAX_POSTPONED_SECONDS = 30.0
"""Of a rule whose judges' provider allows no request yet."""
SCORED_PER_TURN = 20
SCORING_FAILED = translatable(
    "Scoring this run failed. The log of the worker says why."
)
EVALUATOR_UNAVAILABLE = translatable(
    "The evaluator is archived, or no longer shared with the owner of the rule. The "
    "other evaluators of the rule decide."
)
NO_EVALUATORS = translatable(
    "No run is scored: the evaluators of this rule are archived, or no longer shared "
    "with its owner."
)

State = ScoredRun.State


class RuleRevisions(NamedTuple):
    """The newest revisions of the evaluators of a rule."""

    usable: list[EvaluatorRevision]
    """Of those that its owner may use."""
    unavailable: list[EvaluatorRevision]
    """Of the others; they score nothing."""


class DayLimits(NamedTuple):
    """What a rule may use in a day (UTC); null for no limit."""

    runs: int | None
    cost: Decimal | None


@dataclass
class DayUse:
    """What the scores of a day (UTC) have used of a rule's limits."""

    day: date
    limits: DayLimits
    runs: int = 0
    cost: Decimal = Decimal(0)

    @property
    def is_up(self) -> bool:
        """Whether a limit is reached."""
        runs, budget = self.limits
        is_broke = budget is not None and self.cost >= budget
        return is_broke or (runs is not None and self.runs >= runs)

    def add(self, scored: ScoredRun) -> None:
        self.runs += 1
        self.cost += scored.cost


def claim_scoring_rule(*, with_slow: bool = True) -> ScoringRule | None:
    """Claim a rule with runs to score that no live worker has.

    The one that has waited longest comes first; `with_slow` includes those of which
    `may_take_long` is true.
    """
    waiting = ScoredRun.objects.filter(rule=OuterRef("pk"), state=State.WAITING)
    free = Q(lease_until=None) | Q(lease_until__lte=Now())
    rows = ScoringRule.objects.filter(free, Exists(waiting), is_on=True)
    if not with_slow:
        rows = rows.exclude(evaluators__kind__in=list_slow_kinds())
    order = F("lease_until").asc(nulls_first=True)
    for pk in rows.order_by(order, "pk").values_list("pk", flat=True):
        until = read_database_time() + LEASE
        if rows.filter(pk=pk).update(lease_until=until):
            mine = ScoringRule.objects.filter(pk=pk, lease_until=until)
            return mine.select_related("owner").first()
    return None


def may_take_long(rule: ScoringRule) -> bool:
    """Whether the rule asks a model or runs code, for up to minutes."""
    return rule.evaluators.filter(kind__in=list_slow_kinds()).exists()


def renew_rule_lease(rule: ScoringRule) -> datetime:
    """Return the current time; raise `ScoringInterrupted` if another worker has it."""
    now = read_database_time()
    mine = ScoringRule.objects.filter(pk=rule.pk, lease_until=rule.lease_until)
    if not mine.update(lease_until=now + LEASE):
        raise ScoringInterrupted
    rule.lease_until = now + LEASE
    return now


def advance_scoring_rule(rule: ScoringRule) -> int:
    """Score some runs of a claimed rule, and let others claim it; return how many."""
    pause = 0.0
    try:
        return score_waiting_runs(rule)
    except ScoringPostponed as postponed:
        pause = min(postponed.seconds, MAX_POSTPONED_SECONDS)
        return 0
    except ScoringInterrupted:
        logger.warning("rule %s: another worker has it now", rule.pk)
        return 0
    finally:  # the end of its turn is its place among the rules that wait
        mine = ScoringRule.objects.filter(pk=rule.pk, lease_until=rule.lease_until)
        mine.update(lease_until=db_time_from_now(pause))


def score_waiting_runs(rule: ScoringRule) -> int:
    """Score the runs of a turn, unless the day is used up; return how many."""
    count, used = 0, None
    revisions = list_rule_revisions(rule)
    if not note_missing_evaluators(rule, revisions):
        skip_waiting_runs(rule, state=State.UNSCORED)
        return 0
    waiting = rule.scored.filter(state=State.WAITING).select_related("run")
    for scored in waiting.order_by("pk")[:SCORED_PER_TURN]:
        now = renew_rule_lease(rule)
        is_on, most_runs, budget = load_rule_settings(rule)
        if not is_on:
            break
        limits = DayLimits(most_runs, budget)
        if used is None or (used.day, used.limits) != (now.date(), limits):
            used = load_day_use(rule, limits, day=now.date())
        if used.is_up:
            skip_waiting_runs(rule, state=State.SKIPPED)
            break
        if score_selected_run(rule, scored, revisions):
            used.add(scored)
            count += 1
    return count


def note_missing_evaluators(rule: ScoringRule, revisions: RuleRevisions) -> bool:
    """Let the rule say if it has no evaluators left; return whether it has some."""
    rows = ScoringRule.objects.filter(pk=rule.pk)
    if not revisions.usable:
        rows.update(problem=NO_EVALUATORS)
    elif rule.problem == NO_EVALUATORS:
        rows.update(problem="")
    return bool(revisions.usable)


def list_rule_revisions(rule: ScoringRule) -> RuleRevisions:
    unavailable = {one.pk for one in list_unavailable_evaluators(rule)}
    rows = EvaluatorRevision.objects.filter(evaluator__in=rule.evaluators.all())
    rows = rows.select_related("evaluator__owner").order_by("number")
    newest = {one.evaluator_id: one for one in rows}
    return RuleRevisions(
        [one for pk, one in newest.items() if pk not in unavailable],
        [one for pk, one in newest.items() if pk in unavailable],
    )


def list_unavailable_evaluators(rule: ScoringRule) -> list[Evaluator]:
    """Return the evaluators of the rule that its owner may not use, by name.

    It needs no query if they are prefetched and all of its owner, as they usually are.
    """
    found = rule.evaluators.all()
    theirs = [one.pk for one in found if one.owner_id != rule.owner_id]
    shared: set[int] = set()
    if theirs:
        visible = Evaluator.objects.visible_to(rule.owner)
        shared = set(visible.filter(pk__in=theirs).values_list("pk", flat=True))
    unavailable = [
        one
        for one in found
        if one.archived_at is not None or (one.pk in theirs and one.pk not in shared)
    ]
    return sorted(unavailable, key=lambda one: one.name)


def load_rule_settings(rule: ScoringRule) -> tuple[bool, int | None, Decimal | None]:
    """Return whether it is on, and its limits, as they are now.

    A run that has begun is finished: judges may have been paid for it.
    """
    rows = ScoringRule.objects.filter(pk=rule.pk)
    return rows.values_list("is_on", "daily_runs", "daily_budget").get()


def load_day_use(rule: ScoringRule, limits: DayLimits, *, day: date) -> DayUse:
    """Return what this day (UTC) has used."""
    begin_day(rule, day)
    rows = ScoringRule.objects.filter(pk=rule.pk)
    return DayUse(day, limits, *rows.values_list("used_runs", "used_cost").get())


def begin_day(rule: ScoringRule, day: date) -> None:
    """Count from now on what the rule uses of a day (UTC), if it does not yet.

    It begins with the scores that are stored of that day: a worker of a release that
    did not count may have given some.
    """
    rows = ScoringRule.objects.filter(pk=rule.pk).exclude(used_day=day)
    if not rows.exists():
        return
    midnight = datetime.combine(day, time.min, tzinfo=UTC)
    used = rule.scored.filter(state=State.DONE, scored_at__gte=midnight).aggregate(
        runs=Count("pk"), cost=Sum("cost")
    )
    cost = used["cost"] or Decimal(0)
    rows.update(used_day=day, used_runs=used["runs"], used_cost=cost)


def skip_waiting_runs(rule: ScoringRule, *, state: State) -> None:
    """Leave out what waits: scores of tomorrow are for the runs of tomorrow."""
    rule.scored.filter(state=State.WAITING).update(state=state, scored_at=Now())


def score_selected_run(
    rule: ScoringRule, scored: ScoredRun, revisions: RuleRevisions
) -> bool:
    """Store the scores of a run and send it on if it fails; False if it is done.

    Evaluators run outside the transaction that stores what they say. A run whose
    scoring raises is done without a score: it must not hold up all others. Only where
    that cannot be stored either, it is tried again.
    """
    results: list[ScoreResult] = []
    try:
        visible = Run.objects.visible_to(rule.owner)
        if not visible.filter(pk=scored.run_id).exists():
            rule.scored.filter(pk=scored.pk).delete()
            return False
        for revision in revisions.usable:
            renew_rule_lease(rule)
            is_new = not any(each.exchanges for each in results)
            results.append(
                score_by_revision(rule, scored.run, revision, may_postpone=is_new)
            )
        return store_run_scores(rule, scored, revisions, results)
    except ScoringInterrupted:
        raise
    except Exception:  # boundary to all that a run or an extension can hold
        logger.exception("rule %s: run %s is not scored", rule.pk, scored.run_id)
        costs = [one.cost for one in results]
        costs += [Decimal(0)] * (len(revisions.usable) - len(results))
        results = [ScoreResult.not_scored(SCORING_FAILED, cost=one) for one in costs]
        return store_run_scores(rule, scored, revisions, results)


def score_by_revision(
    rule: ScoringRule, run: Run, revision: EvaluatorRevision, *, may_postpone: bool
) -> ScoreResult:
    """Return what an evaluator says; each of its votes renews the lease."""
    return score_run(
        run,
        EvaluationExample(inputs=run.inputs),
        kind=revision.kind,
        config=revision.config,
        by=revision.evaluator.owner,
        before_effect=partial(renew_rule_lease, rule),
        may_postpone=may_postpone,
    )


def store_run_scores(
    rule: ScoringRule,
    scored: ScoredRun,
    revisions: RuleRevisions,
    results: Sequence[ScoreResult],
) -> bool:
    """Store the results and send a failing run on; False if another worker did.

    Evaluators that are unavailable say so, and do not count. What the results have cost
    is counted for the rule in any case: the run may have been deleted meanwhile.
    """
    pairs = list(zip(revisions.usable, results, strict=True))
    unavailable = ScoreResult.not_scored(EVALUATOR_UNAVAILABLE)
    combined = combine_scores(results)
    scored.cost = sum((one.cost for one in results), Decimal(0))
    judged = [
        JudgedRun(scored.run_id, revision, result.exchanges)
        for revision, result in pairs
        if is_judge(revision)
    ]
    with transaction.atomic():
        judged = lock_judged_runs(judged)
        mine = ScoredRun.objects.filter(pk=scored.pk, state=State.WAITING)
        stored = mine.update(
            state=State.DONE,
            passed=combined.passed,
            value=combined.value,
            cost=scored.cost,
            scored_at=Now(),
        )
        ScoringRule.objects.filter(pk=rule.pk).update(
            used_runs=F("used_runs") + stored, used_cost=F("used_cost") + scored.cost
        )
        if not stored:
            return False
        RunScore.objects.bulk_create(
            build_run_score(scored, revision, result)
            for revision, result in [
                *pairs,
                *((one, unavailable) for one in revisions.unavailable),
            ]
        )
        store_judge_requests(judged)
        if combined.passed is False:
            send_failing_run(rule, scored.run, list_failures(pairs))
    return True


def list_failures(
    pairs: Sequence[tuple[EvaluatorRevision, ScoreResult]],
) -> list[str]:
    """Return the names of the evaluators that were not passed."""
    return [one.evaluator.name for one, result in pairs if result.passed is False]


def build_run_score(
    scored: ScoredRun, revision: EvaluatorRevision, result: ScoreResult
) -> RunScore:
    """Return the row of a result, not stored yet."""
    return RunScore(scored=scored, revision=revision, **build_score_columns(result))
