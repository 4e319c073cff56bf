"""How a run ends: with a result, canceled, failed, or back in the queue."""

from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now

from runs.engine.parsing.clean import clean_json, clean_text
from runs.engine.types import AgentResult
from runs.models import AgentStep, Decision, Run
from runs.models.runs import UNFINISHED_STATUSES
from runs.store.claims import ClaimedRun, LeaseLost
from runs.store.commits import (
    ModelReply,
    build_reply_row,
    persist,
    retry_until_database_up,
)
from runs.store.recovery import MAX_RECOVERIES
from runs.store.transitions import notify_run_changed, transition
from tools.text.translatable import change_text, translatable

UNFINISHED_STEP_STATUSES = (
    AgentStep.Status.PLANNED,
    AgentStep.Status.AWAITING_APPROVAL,
    AgentStep.Status.STARTED,
    AgentStep.Status.UNKNOWN,
)


MAX_FINISH_REASON = 40


def end_run(
    run: Run,
    claim: ClaimedRun,
    result: AgentResult,
    pending: ModelReply | None,
    *,
    finish_reason: str = "",
) -> None:
    """Commit the result with the reply that led to it.

    `finish_reason` is that of the last reply, which a fork or resume may have reused.
    """
    reply = build_reply_row(run, pending, steps=0) if pending is not None else None
    error = result.error

    def write() -> None:
        done = transition(
            run,
            to=result.status,
            fence=claim.fence,
            reply=reply,
            output=clean_json(result.output),
            output_log=clean_text(result.log),
            stop_reason=result.stop_reason or "",
            error_code=error.code if error else "",
            error_message=change_text(error.message, clean_text) if error else "",
            finish_reason=finish_reason[:MAX_FINISH_REASON],
        )
        if not done and not _is_end_committed(run, claim, result.status):
            raise LeaseLost

    retry_until_database_up(claim, write)


def _is_end_committed(run: Run, claim: ClaimedRun, status: str) -> bool:
    """Whether an earlier attempt at this very commit succeeded."""
    rows = Run.objects.filter(pk=run.pk, fence=claim.fence, status=status)
    return rows.exists()


def end_canceled(run: Run, *, fence: int | None = None) -> bool:
    """Cancel `run` with its open steps; False if it has ended or a worker has it."""
    with transaction.atomic():
        if not transition(run, to=Run.Status.CANCELED, fence=fence):
            return False
        close_open_steps(run)
        return True


def end_failed(run: Run, claim: ClaimedRun) -> None:
    """Fail a run with an internal error; the details are in the log."""
    moved = transition(
        run,
        to=Run.Status.FAILED,
        fence=claim.fence,
        error_code="internal",
        error_message=translatable(
            "An internal error ended this run. Its steps are kept. See the worker log "
            "for details."
        ),
    )
    if moved:
        close_open_steps(run)


def end_crashed(run: Run, claim: ClaimedRun) -> None:
    """Fail a run that has killed its worker repeatedly."""

    def write() -> None:
        moved = transition(
            run,
            to=Run.Status.FAILED,
            fence=claim.fence,
            error_code="crashed_repeatedly",
            error_message=translatable(
                "The worker died %(count)s times in a row at the same step of this "
                "run. Its steps are kept.",
                count=MAX_RECOVERIES,
            ),
        )
        if moved:
            close_open_steps(run)

    persist(claim, write)


def requeue_run(run: Run, claim: ClaimedRun) -> None:
    """Return a run to the queue because this process is shutting down."""
    transition(run, to=Run.Status.QUEUED, fence=claim.fence)


def close_open_steps(run: Run, *, by: int | None = None) -> None:
    """End the open steps of an ended run; mark those with an unknown outcome.

    Its child runs end with it. `by` is the key of the user who ended the run; by
    default that of who canceled it.
    """
    columns = ("seq", "cancel_requested_at", "canceled_by")
    seq, canceled_at, canceled_by = Run.objects.values_list(*columns).get(pk=run.pk)
    if by is None and canceled_at is not None:
        by = canceled_by
    steps = AgentStep.objects.filter(run=run)
    changed: dict[str, Any] = {"changed_seq": seq}
    steps.filter(status=AgentStep.Status.STARTED, effect="side_effect").update(
        status=AgentStep.Status.UNKNOWN, **changed
    )
    steps.filter(status__in=UNFINISHED_STEP_STATUSES).exclude(
        status=AgentStep.Status.UNKNOWN
    ).update(status=AgentStep.Status.CANCELED, **changed)
    Decision.objects.filter(step__run=run, answer="").update(
        answer=Decision.Answer.WITHDRAWN, by=by, at=Now()
    )
    cancel_children(run, by=by)


def cancel_children(run: Run, *, by: int | None) -> None:
    """Cancel the unfinished child runs of `run`, and theirs."""
    children = Run.objects.filter(parent_step__run=run, status__in=UNFINISHED_STATUSES)
    for child in children.order_by("pk"):
        request_cancel(child, by=by)


def request_cancel(run: Run, *, by: int | None) -> bool:
    """Cancel `run` and its children; False if it has already ended.

    `by` is a user's key. In a transaction of the caller; a run that no worker has
    is ended when this returns.
    """
    rows = Run.objects.filter(pk=run.pk, status__in=UNFINISHED_STATUSES)
    asked = rows.update(
        cancel_requested_at=Coalesce("cancel_requested_at", Now()), seq=F("seq") + 1
    )
    if not asked:
        return False
    rows.filter(canceled_by=None).update(canceled_by_id=by)
    notify_run_changed(run.pk)
    if not end_canceled(run):  # its worker ends it; the children need not wait
        cancel_children(run, by=by)
    return True
