"""Expire approvals that nobody answered in time."""

from django.db import transaction
from django.db.models.functions import Now

from runs.models import AgentStep, Decision, Run
from runs.services.approvals.answer import apply_decision, close_decision, lock_run
from runs.services.errors import AlreadyDecided
from runs.services.runs.end import close_open_steps
from runs.store.transitions import transition

EXPIRED_OBSERVATION = "Nobody approved this call in time, so it was not made."
APPROVALS_PER_SWEEP = 100


def expire_approvals() -> int:
    """Close the decisions that are past due; return how many."""
    due = Decision.objects.open().filter(expires_at__lte=Now())
    rows = due.select_related("step__run").order_by("expires_at")[:APPROVALS_PER_SWEEP]
    return sum(expire_approval(decision) for decision in rows)


EXPIRED_STEP_COLUMNS = {
    "status": AgentStep.Status.REJECTED,
    "observation": EXPIRED_OBSERVATION,
    "elapsed": 0.0,
}


def expire_approval(decision: Decision) -> bool:
    """Apply the configured default; False if somebody answered meanwhile."""
    try:
        with transaction.atomic():
            lock_run(decision.step.run)
            if decision.at_expiry == Decision.AtExpiry.STOP:
                _stop_expired_run(decision)
            else:
                close_decision(decision, Decision.Answer.EXPIRED, by=None, reason="")
                apply_decision(decision, EXPIRED_STEP_COLUMNS)
    except AlreadyDecided:
        return False
    return True


def _stop_expired_run(decision: Decision) -> None:
    run = decision.step.run
    close_decision(decision, Decision.Answer.EXPIRED, by=None, reason="")
    moved = transition(
        run,
        to=Run.Status.LIMIT_REACHED,
        only_from=(Run.Status.AWAITING_APPROVAL,),
        stop_reason=Run.StopReason.EXPIRED,
    )
    if moved:
        close_open_steps(run)
