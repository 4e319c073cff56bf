"""The only writer of `Run.status`: one conditional UPDATE per change."""

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.models import F

from runs import bell, stream
from runs.models import AgentStep, Run, Worker
from runs.models.runs import OVER, UNFINISHED
from runs.services.clock import moment
from runs.services.fenced import Commit, NewReply, send
from runs.services.held import LeaseLost
from runs.services.outbox import telling_of
from runs.services.prepared import Prepared
from runs.services.rows import assignments
from tools.statement import execute

Status = Run.Status

BEFORE: dict[str, tuple[str, ...]] = {
    Status.QUEUED: (
        Status.RUNNING,
        Status.AWAITING_APPROVAL,
        Status.AWAITING_DECISION,
        Status.WAITING,
        Status.STOPPED,
        Status.FAILED,
    ),
    Status.RUNNING: (Status.QUEUED,),
    Status.AWAITING_APPROVAL: (Status.RUNNING,),
    Status.AWAITING_DECISION: (Status.RUNNING,),
    Status.WAITING: (Status.RUNNING,),
    Status.SUCCEEDED: (Status.RUNNING,),
    Status.STOPPED: (Status.RUNNING, Status.AWAITING_APPROVAL),
    Status.FAILED: (Status.RUNNING, Status.AWAITING_DECISION),
    Status.CANCELLED: (
        Status.QUEUED,
        Status.RUNNING,
        Status.AWAITING_APPROVAL,
        Status.AWAITING_DECISION,
        Status.WAITING,
    ),
}
"""From which states each state can be entered."""

MOST_RESCUES = 3
"""Lost leases in a row, without a new step, after which a run is given up."""

USED = ("model_calls", "input_tokens", "output_tokens", "cost")
"""What a run has used; a parent's contains that of its children that are over."""

CLAIMED = Prepared(
    lambda pk: Run.objects.select_related("spec", "agent__owner").filter(pk=pk), int
)


def move(
    run: Run,
    *,
    to: str,
    fence: int | None = None,
    only_from: tuple[str, ...] | None = None,
    reply: NewReply | None = None,
    **changes: Any,
) -> bool:
    """Change the status in one statement; False where table or fence forbids it.

    A worker passes its fence. Without one, a run that a live worker holds stays as it
    is. `only_from` names the states the caller has looked at, where the table allows
    more. `reply` and `changes`, which are further columns, are written with the status
    or not at all.
    """
    step, is_end = run.parent_step_id, to in OVER
    with transaction.atomic(savepoint=False) if step is not None else nullcontext():
        if step is not None and is_end:
            lock_ancestors(run)
        allowed = [b for b in BEFORE[to] if only_from is None or b in only_from]
        changes = {**_entering(to), **changes, "status": to, "lease_until": None}
        if not _write(run, changes, allowed=allowed, fence=fence, reply=reply):
            return False
        if to == Status.QUEUED:
            bell.ring(run.pk)
        announce(run.pk)
        if step is not None and is_end:
            _end_child(run)
        elif step is not None:
            show_child(step)
    return True


def _write(
    run: Run,
    changes: dict[str, Any],
    *,
    allowed: Sequence[str],
    fence: int | None,
    reply: NewReply | None,
) -> bool:
    parts, values = assignments(Run, changes)
    where = [f"id = %s AND status IN ({_listed(allowed)})"]
    found: list[Any] = [run.pk]
    if fence is None:
        where.append(f"NOT (status = 'running' AND lease_until > {moment().sql})")
    else:
        where.append("status = 'running' AND fence = %s")
        found.append(fence)
    telling = telling_of(run, changes["status"])
    if reply is not None:
        parts.append(reply.counts)
        values += reply.counted
        where.append(reply.condition)
        found += reply.expected
    returning = "seq" if telling is None else telling.returning
    sql = (
        f"UPDATE runs_run SET seq = seq + 1, {', '.join(parts)} "  # noqa: S608  (our own names)
        f"WHERE {' AND '.join(where)} RETURNING {returning}"
    )
    call = reply.call if reply else None
    commit = Commit(sql, [*values, *found], call=call, telling=telling)
    try:
        send(commit)
    except LeaseLost:
        return False
    for delivery_id in commit.told:
        bell.ring_delivery(delivery_id)
    return True


def lock_ancestors(run: Run) -> None:
    """Lock the runs above a child, the topmost first, before the child itself.

    Whatever writes to several runs of one tree begins so, and nothing waits in a
    circle: a parent that is stopped and a child that ends meet at the top.
    """
    above = ancestors_of(run)
    if above:
        rows = Run.objects.select_for_update().filter(pk__in=above).order_by("pk")
        list(rows.values_list("pk"))


def ancestors_of(run: Run) -> list[int]:
    """Return the keys of the runs above `run`, its parent first; deleted ones not."""
    found, step = list[int](), run.parent_step_id
    while step is not None:
        above = Run.objects.filter(steps=step).values_list("pk", "parent_step_id")
        pk, step = above.first() or (None, None)
        found += [pk] if pk else []
    return found


def _end_child(run: Run) -> None:
    """Count what an ended child has used to its parent; the last one wakes it.

    What a child counts after its parent is over, the parents above count too.
    """
    used = Run.objects.values(*USED).get(pk=run.pk)
    step = run.parent_step_id
    while step is not None:
        parent = _parent_at(step)
        Run.objects.filter(pk=parent.pk).update(
            seq=F("seq") + 1, **{name: F(name) + used[name] for name in USED}
        )
        _stamp(step, parent)
        if not parent.is_over:
            wake_parent(parent)
            return
        step = parent.parent_step_id


def wake_parent(parent: Run) -> bool:
    """Put a run whose children are all over back into the queue, if it waits."""
    if Run.objects.filter(parent_step__run=parent, status__in=UNFINISHED).exists():
        return False
    return move(parent, to=Status.QUEUED, only_from=(Status.WAITING,))


def show_child(step_id: int) -> None:
    """Let viewers of the parent see, after the commit, where its child is now."""
    transaction.on_commit(partial(_touch, step_id), robust=True)


def _touch(step_id: int) -> None:
    with transaction.atomic():
        rows = Run.objects.filter(steps=step_id, status__in=UNFINISHED)
        parent = rows.only("pk").first()
        if parent and Run.objects.filter(pk=parent.pk).update(seq=F("seq") + 1):
            _stamp(step_id, parent)


def _parent_at(step_id: int) -> Run:
    return Run.objects.only("status", "parent_step").get(steps=step_id)


def _stamp(step_id: int, parent: Run) -> None:
    """Mark the step that waits for a child as changed, at the run's new seq."""
    seq = Run.objects.values_list("seq", flat=True).get(pk=parent.pk)
    AgentStep.objects.filter(pk=step_id).update(changed_seq=seq)
    announce(parent.pk)


def announce(run_id: int, seq: int = 0) -> None:
    """Tell viewers, after the commit, that there is something to read, up to `seq`."""
    if connections[DEFAULT_DB_ALIAS].in_atomic_block:
        transaction.on_commit(partial(stream.notify, run_id, seq), robust=True)
    else:
        stream.notify(run_id, seq)


def claim(
    run_id: int, worker: Worker | None, *, takes_suspects: bool = False
) -> Run | None:
    """Take a run that waits, or whose worker is gone; None where somebody has it.

    A suspect, which has lost two workers in a row, is left unless asked for. The fence
    is the one of this very claim: a worker that was frozen between claim and read may
    find that of its successor, and would act under it.
    """
    calm = "" if takes_suspects else "AND rescues = 0"
    now, lease = moment().sql, moment(settings.LEASE_SECONDS)
    parts, values = assignments(
        Run,
        {
            "status": Status.RUNNING,
            "lease_until": lease,
            "worker": worker and worker.pk,
            "not_before": None,
        },
    )
    taken = execute(
        f"""UPDATE runs_run SET seq = seq + 1, fence = fence + 1,
            started_at = COALESCE(started_at, {now}),
            rescues = rescues + CASE WHEN status = 'running' THEN 1 ELSE 0 END,
            {", ".join(parts)}
        WHERE id = %s AND (
            status = 'queued' AND (not_before IS NULL OR not_before <= {now})
            OR status = 'running' AND lease_until < {now} {calm})
        RETURNING fence
        """,  # noqa: S608  (our own names)
        [*values, run_id],
    ).row
    if taken is None:
        return None
    announce(run_id)
    run = CLAIMED.first(run_id)
    if run is None or run.fence != taken[0]:
        return None
    if run.parent_step_id is not None:
        show_child(run.parent_step_id)
    return run


def _listed(statuses: Sequence[str]) -> str:
    """Return statuses, which are words of ours, as SQL; NULL, which is never equal."""
    return ", ".join(f"'{status}'" for status in statuses) or "NULL"


def _entering(status: str) -> dict[str, Any]:
    """Return the columns that say how long a run is in its new state, and why."""
    if status == Status.QUEUED:
        return {
            "queued_at": moment(),
            "rung_at": moment(),
            "ended_at": None,
            "stop_reason": "",
            "error_code": "",
            "error_message": "",
        }
    if status in (
        Status.SUCCEEDED,
        Status.STOPPED,
        Status.FAILED,
        Status.CANCELLED,
    ):
        return {"ended_at": moment(), "not_before": None}
    return {}
