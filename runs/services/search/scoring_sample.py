"""Select ended runs for scoring rules, in the transaction that indexes them."""

import hashlib
from collections.abc import Sequence

from django.db.models import Q

from runs.models import Run, ScoredRun, ScoringRule

SCORED_STATUSES = ("succeeded", "limit_reached")
"""A run that failed or was canceled has no answer to score."""


def select_runs_to_score(runs: Sequence[Run]) -> int:
    """Note which of the ended runs each rule scores; a run is noted once."""
    real = [run for run in runs if is_real(run)]
    if not real:
        return 0
    agents = {run.agent_id for run in real}
    rules = ScoringRule.objects.filter(is_on=True, owner__is_active=True).filter(
        Q(owner__is_superuser=True) | Q(owner__in={run.owner_id for run in real}),
        agent__in=agents,
    )
    rows = [
        ScoredRun(rule=rule, run=run)
        for rule in rules.select_related("owner")
        for run in real
        if is_selected(rule, run)
    ]
    ScoredRun.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def is_real(run: Run) -> bool:
    """Whether somebody asked for its answer: no test, no experiment, no part of one."""
    return (
        run.status in SCORED_STATUSES
        and not run.is_test
        and not run.tool_mode
        and run.parent_step_id is None
        and run.source not in (Run.Source.EXPERIMENT, Run.Source.IMPORT)
    )


def is_selected(rule: ScoringRule, run: Run) -> bool:
    """Whether a rule scores a run; the same answer whenever it is asked."""
    is_visible = rule.owner.is_superuser or run.owner_id == rule.owner_id
    is_new = run.ended_at is not None and run.ended_at >= rule.created_at
    if run.agent_id != rule.agent_id or not is_visible or not is_new:
        return False
    return compute_lot(rule.pk, run.pk) < float(rule.percent) / 100


def compute_lot(rule_id: int, run_id: int) -> float:
    """Return a number from 0 to 1, evenly spread over runs."""
    digest = hashlib.sha256(f"{rule_id}:{run_id}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64
