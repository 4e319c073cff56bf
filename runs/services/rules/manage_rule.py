"""Pause and resume a scoring rule; delete it with its scores, which can be millions."""

from django.db import transaction
from django.db.models.functions import Now

from runs.models import RunScore, ScoredRun, ScoringRule
from runs.services.runs.delete_rows import delete_raw

DELETED_AT_ONCE = 5_000


def set_scoring_rule_enabled(rule: ScoringRule, *, is_on: bool) -> None:
    """Pause or resume it; runs that end while it is paused are not scored."""
    rule.is_on = is_on
    rule.save(update_fields=["is_on"])


def delete_scoring_rule(rule: ScoringRule) -> None:
    """Stop the rule, then delete its rows in batches, and the rule at last.

    No rows are loaded, and no statement is long. If it is cut short, the rule is paused
    with fewer scores, and can be deleted again.
    """
    # Without its lease, a worker that has the rule stops before the next vote.
    ScoringRule.objects.filter(pk=rule.pk).update(is_on=False, lease_until=Now())
    while delete_scored_runs(rule):
        pass
    rule.delete()


def delete_scored_runs(rule: ScoringRule) -> int:
    """Delete some scored runs of a rule with their scores; return how many."""
    with transaction.atomic():
        # Locked first: a worker that stores scores of one now is waited for.
        rows = rule.scored.select_for_update().order_by()[:DELETED_AT_ONCE]
        ids = list(rows.values_list("pk", flat=True))
        delete_raw(RunScore.objects.filter(scored__in=ids))
        return delete_raw(ScoredRun.objects.filter(pk__in=ids))
