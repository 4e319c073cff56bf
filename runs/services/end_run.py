"""How a run ends: with a result, by a person, by our mistake, or for another worker."""

from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now

from runs.engine.clean import clean_json, clean_text
from runs.engine.types import Result
from runs.models import AgentStep, Decision, Run
from runs.models.runs import UNFINISHED
from runs.services.commits import Asked, keep_trying, new_reply, persist
from runs.services.held import Held, LeaseLost
from runs.services.move import MOST_RESCUES, announce, move

OPEN = (
    AgentStep.Status.PLANNED,
    AgentStep.Status.AWAITING_APPROVAL,
    AgentStep.Status.STARTED,
    AgentStep.Status.UNKNOWN,
)


def end_run(run: Run, held: Held, result: Result, pending: Asked | None) -> None:
    """Commit the result, with the reply that led to it."""
    reply = new_reply(run, pending, steps=0) if pending is not None else None
    error = result.error

    def write() -> None:
        done = move(
            run,
            to=result.status,
            fence=held.fence,
            reply=reply,
            output=clean_json(result.output),
            output_log=clean_text(result.log),
            stop_reason=result.stop_reason or "",
            error_code=error.code if error else "",
            error_message=clean_text(error.message) if error else "",
        )
        if not done and not _is_ended(run, held, result.status):
            raise LeaseLost

    keep_trying(held, write)


def _is_ended(run: Run, held: Held, status: str) -> bool:
    """Whether an earlier try of this very commit got through."""
    rows = Run.objects.filter(pk=run.pk, fence=held.fence, status=status)
    return rows.exists()


def end_cancelled(run: Run, *, fence: int | None = None) -> bool:
    """Cancel `run` with its open steps; False where it is over or held by a worker."""
    with transaction.atomic():
        if not move(run, to=Run.Status.CANCELLED, fence=fence):
            return False
        close_steps(run)
        return True


def end_failed(run: Run, held: Held) -> None:
    """End a run by our mistake: a general word here, the details in the log."""
    moved = move(
        run,
        to=Run.Status.FAILED,
        fence=held.fence,
        error_code="internal",
        error_message=(
            "An error inside the application ended this run. Its steps are kept. The "
            "log of the worker has the details."
        ),
    )
    if moved:
        close_steps(run)


def give_up(run: Run, held: Held) -> None:
    """End a run that has taken its worker along again and again."""

    def write() -> None:
        moved = move(
            run,
            to=Run.Status.FAILED,
            fence=held.fence,
            error_code="crashed_repeatedly",
            error_message=(
                f"The worker died {MOST_RESCUES} times in a row at the same place of "
                "this run. Its steps are kept."
            ),
        )
        if moved:
            close_steps(run)

    persist(held, write)


def put_back(run: Run, held: Held) -> None:
    """Return a run to the queue because this process ends."""
    move(run, to=Run.Status.QUEUED, fence=held.fence)


def close_steps(run: Run) -> None:
    """End the open steps of a run that is over; say so where an effect is uncertain.

    What it has asked other agents for ends with it.
    """
    seq, by = Run.objects.values_list("seq", "cancelled_by").get(pk=run.pk)
    steps = AgentStep.objects.filter(run=run)
    changed: dict[str, Any] = {"changed_seq": seq}
    steps.filter(status=AgentStep.Status.STARTED, effect="side_effect").update(
        status=AgentStep.Status.UNKNOWN, **changed
    )
    steps.filter(status__in=OPEN).exclude(status=AgentStep.Status.UNKNOWN).update(
        status=AgentStep.Status.CANCELLED, **changed
    )
    Decision.objects.filter(step__run=run, answer="").update(
        answer=Decision.Answer.WITHDRAWN, at=Now()
    )
    cancel_children(run, by=by)


def cancel_children(run: Run, *, by: int | None) -> None:
    """Ask the unfinished child runs of `run`, and theirs, to end."""
    children = Run.objects.filter(parent_step__run=run, status__in=UNFINISHED)
    for child in children.order_by("pk"):
        request_end(child, by=by)


def request_end(run: Run, *, by: int | None) -> bool:
    """Ask `run` and its children to end; False where it is over already.

    `by` is a person's key. In a transaction of the caller; a run that no worker has is
    over when this returns.
    """
    rows = Run.objects.filter(pk=run.pk, status__in=UNFINISHED)
    asked = rows.update(
        cancel_requested_at=Coalesce("cancel_requested_at", Now()), seq=F("seq") + 1
    )
    if not asked:
        return False
    rows.filter(cancelled_by=None).update(cancelled_by_id=by)
    announce(run.pk)
    if not end_cancelled(run):  # its worker ends it; the children need not wait
        cancel_children(run, by=by)
    return True
