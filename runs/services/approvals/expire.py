"""Doing what was announced for the case that nobody answers in time."""

from django.db import transaction
from django.db.models.functions import Now

from runs.models import AgentStep, Decision, Run
from runs.services.close_question import close_question, go_on, lock_run
from runs.services.end_run import close_steps
from runs.services.errors import AlreadyDecided
from runs.services.move import move

EXPIRED = "Nobody answered in time whether this call may run, so it was not run."
AT_ONCE = 100


def expire_questions() -> int:
    """Close the questions whose time is over; return how many."""
    due = Decision.objects.open().filter(expires_at__lte=Now())
    rows = due.select_related("step__run").order_by("expires_at")[:AT_ONCE]
    return sum(expire_question(decision) for decision in rows)


REJECTED = {
    "status": AgentStep.Status.REJECTED,
    "observation": EXPIRED,
    "elapsed": 0.0,
}


def expire_question(decision: Decision) -> bool:
    """Do what was announced for the case that nobody answers; False if somebody did."""
    try:
        with transaction.atomic():
            lock_run(decision.step.run)
            if decision.at_expiry == Decision.AtExpiry.STOP:
                _stop(decision)
            else:
                close_question(decision, Decision.Answer.EXPIRED, by=None, reason="")
                go_on(decision, REJECTED)
    except AlreadyDecided:
        return False
    return True


def _stop(decision: Decision) -> None:
    run = decision.step.run
    close_question(decision, Decision.Answer.EXPIRED, by=None, reason="")
    moved = move(
        run,
        to=Run.Status.STOPPED,
        only_from=(Run.Status.AWAITING_APPROVAL,),
        stop_reason=Run.StopReason.EXPIRED,
    )
    if moved:
        close_steps(run)
