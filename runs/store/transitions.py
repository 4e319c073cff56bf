"""The only writer of `Run.status`: one conditional UPDATE per change."""

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.models import F

from runs import redis_streams as stream
from runs import wakeup
from runs.models import AgentStep, Run, Worker
from runs.models.runs import FINISHED_STATUSES, UNFINISHED_STATUSES
from runs.store.claims import LeaseLost
from runs.store.database_clock import build_sql_time
from runs.store.fast_insert import build_assignments
from runs.store.fast_select import select_row
from runs.store.fenced_commit import Commit, NewReply, write_commit
from runs.store.outbox import outbox_insert_for
from runs.store.recovery import build_lost_condition
from runs.store.site_pause import NOT_PAUSED_SQL
from tools.statement import execute_statement

Status = Run.Status

ALLOWED_FROM: dict[str, tuple[str, ...]] = {
    Status.QUEUED: (
        Status.RUNNING,
        Status.AWAITING_APPROVAL,
        Status.AWAITING_DECISION,
        Status.WAITING,
        Status.LIMIT_REACHED,
        Status.FAILED,
    ),
    Status.RUNNING: (Status.QUEUED,),
    Status.AWAITING_APPROVAL: (Status.RUNNING,),
    Status.AWAITING_DECISION: (Status.RUNNING,),
    Status.WAITING: (Status.RUNNING, Status.QUEUED),
    Status.SUCCEEDED: (Status.RUNNING,),
    Status.LIMIT_REACHED: (Status.RUNNING, Status.AWAITING_APPROVAL),
    Status.FAILED: (
        Status.RUNNING,
        Status.AWAITING_DECISION,
        Status.QUEUED,
        Status.WAITING,
    ),
    Status.CANCELED: (
        Status.QUEUED,
        Status.RUNNING,
        Status.AWAITING_APPROVAL,
        Status.AWAITING_DECISION,
        Status.WAITING,
    ),
}
"""The statuses from which each status can be entered."""

USAGE_FIELDS = ("model_calls", "input_tokens", "output_tokens", "cost")
"""Usage of a run; a parent's includes that of its ended children."""

CLAIMED_RUN_RELATIONS = ("spec", "agent", "agent__owner", "owner")


def transition(
    run: Run,
    *,
    to: str,
    fence: int | None = None,
    only_from: tuple[str, ...] | None = None,
    reply: NewReply | None = None,
    **changes: Any,
) -> bool:
    """Change the status in one statement; False if table or fence forbids it.

    A worker passes its fence. Without one, a run claimed by a live worker is not
    changed. `only_from` restricts the current status further than the table.
    `reply` and `changes`, which are other columns, are written together with the
    status or not at all.
    """
    step, is_end = run.parent_step_id, to in FINISHED_STATUSES
    with transaction.atomic(savepoint=False) if step is not None else nullcontext():
        if step is not None and is_end:
            lock_ancestors(run)
        allowed = [b for b in ALLOWED_FROM[to] if only_from is None or b in only_from]
        changes = {
            **_build_entry_columns(to),
            **changes,
            "status": to,
            "lease_until": None,
        }
        if not _write_transition(
            run, changes, allowed=allowed, fence=fence, reply=reply
        ):
            return False
        if to == Status.QUEUED:
            wakeup.enqueue_run(run.pk, queue=run.queue)
        notify_run_changed(run.pk)
        if step is not None and is_end:
            _settle_child(run)
        elif step is not None:
            notify_child_changed(step)
    return True


def _write_transition(
    run: Run,
    changes: dict[str, Any],
    *,
    allowed: Sequence[str],
    fence: int | None,
    reply: NewReply | None,
) -> bool:
    parts, values = build_assignments(Run, changes)
    where = [f"id = %s AND status IN ({_status_list_sql(allowed)})"]
    found: list[Any] = [run.pk]
    if fence is None:
        where.append(
            f"NOT (status = 'running' AND lease_until > {build_sql_time().sql})"
        )
    else:
        where.append("status = 'running' AND fence = %s")
        found.append(fence)
    outbox_insert = outbox_insert_for(run, changes["status"])
    if reply is not None:
        parts.append(reply.assignments_sql)
        values += reply.assignment_values
        where.append(reply.condition_sql)
        found += reply.condition_values
    returning = "seq" if outbox_insert is None else outbox_insert.returning
    sql = (
        f"UPDATE runs_run SET seq = seq + 1, {', '.join(parts)} "  # noqa: S608  (our own names)
        f"WHERE {' AND '.join(where)} RETURNING {returning}"
    )
    call = reply.call if reply else None
    commit = Commit(sql, [*values, *found], call=call, outbox_insert=outbox_insert)
    try:
        write_commit(commit)
    except LeaseLost:
        return False
    for delivery_id in commit.delivery_ids:
        wakeup.enqueue_delivery(delivery_id)
    return True


def lock_ancestors(run: Run) -> None:
    """Lock the runs above a child, the topmost first, before the child itself.

    Every write to several runs of one tree begins this way. This prevents
    deadlocks: canceling a parent and ending its child both start at the top.
    """
    above = get_ancestor_ids(run)
    if above:
        rows = Run.objects.select_for_update().filter(pk__in=above).order_by("pk")
        list(rows.values_list("pk"))


def get_ancestor_ids(run: Run) -> list[int]:
    """Return the keys of existing runs above `run`, its parent first."""
    found, step = list[int](), run.parent_step_id
    while step is not None:
        above = Run.objects.filter(steps=step).values_list("pk", "parent_step_id")
        pk, step = above.first() or (None, None)
        found += [pk] if pk else []
    return found


def _settle_child(run: Run) -> None:
    """Add an ended child's usage to its parent; the last child wakes the parent.

    Usage that arrives after the parent has ended is added to the parents above too.
    """
    used = Run.objects.values(*USAGE_FIELDS).get(pk=run.pk)
    step = run.parent_step_id
    while step is not None:
        parent = _get_parent(step)
        Run.objects.filter(pk=parent.pk).update(
            seq=F("seq") + 1, **{name: F(name) + used[name] for name in USAGE_FIELDS}
        )
        _stamp_parent_step(step, parent)
        if not parent.is_over:
            wake_parent(parent)
            return
        step = parent.parent_step_id


def wake_parent(parent: Run) -> bool:
    """Queue a waiting run whose children have all ended."""
    if Run.objects.filter(
        parent_step__run=parent, status__in=UNFINISHED_STATUSES
    ).exists():
        return False
    return transition(parent, to=Status.QUEUED, only_from=(Status.WAITING,))


def notify_child_changed(step_id: int) -> None:
    """Show viewers of the parent, after the commit, the child's new state."""
    transaction.on_commit(partial(_bump_parent_seq, step_id), robust=True)


def _bump_parent_seq(step_id: int) -> None:
    with transaction.atomic():
        rows = Run.objects.filter(steps=step_id, status__in=UNFINISHED_STATUSES)
        parent = rows.only("pk").first()
        if parent and Run.objects.filter(pk=parent.pk).update(seq=F("seq") + 1):
            _stamp_parent_step(step_id, parent)


def _get_parent(step_id: int) -> Run:
    return Run.objects.only("status", "parent_step", "queue").get(steps=step_id)


def _stamp_parent_step(step_id: int, parent: Run) -> None:
    """Mark the step that waits for a child as changed, at the run's new seq."""
    seq = Run.objects.values_list("seq", flat=True).get(pk=parent.pk)
    AgentStep.objects.filter(pk=step_id).update(changed_seq=seq)
    notify_run_changed(parent.pk)


def notify_run_changed(run_id: int, seq: int = 0) -> None:
    """Notify viewers, after the commit, of changes up to `seq`."""
    if connections[DEFAULT_DB_ALIAS].in_atomic_block:
        transaction.on_commit(
            partial(stream.publish_run_notice, run_id, seq), robust=True
        )
    else:
        stream.publish_run_notice(run_id, seq)


def claim_run(
    run_id: int,
    worker: Worker | None,
    *,
    takes_suspects: bool = False,
    recovers: bool = True,
    is_within_limits: bool = False,
) -> Run | None:
    """Claim a queued run, or one whose lease expired; None if it is not available.

    A queued run with a limit on concurrent runs is claimed only if it
    `is_within_limits`, which `runs.store.limits` finds out.

    A crash suspect, which has lost two workers in a row, is skipped by default. Runs
    whose lease expired are claimed only if it `recovers`. The fence is the one of this
    very claim: a worker that was frozen between claim and read may find that of its
    successor, and must not act under it.
    """
    calm = "" if takes_suspects else "AND recoveries = 0"
    lost = build_lost_condition()
    now, lease = build_sql_time().sql, build_sql_time(settings.LEASE_SECONDS)
    parts, values = build_assignments(
        Run,
        {
            "status": Status.RUNNING,
            "lease_until": lease,
            "worker": worker and worker.pk,
            "available_at": None,
        },
    )
    taken = execute_statement(
        f"""UPDATE runs_run SET seq = seq + 1, fence = fence + 1,
            started_at = COALESCE(started_at, {now}),
            recoveries = recoveries + CASE WHEN status = 'running' THEN 1 ELSE 0 END,
            {", ".join(parts)}
        WHERE id = %s AND (
            status = 'queued' AND (available_at IS NULL OR available_at <= {now})
            {"" if is_within_limits else f"AND {_build_unlimited_sql()}"}
            {f"OR {lost.sql} {calm}" if recovers else ""})
            AND {NOT_PAUSED_SQL}
        RETURNING fence
        """,  # noqa: S608  (our own names)
        [*values, run_id, *(lost.values if recovers else ())],
    ).row
    if taken is None:
        return None
    notify_run_changed(run_id)
    run = select_row(Run, CLAIMED_RUN_RELATIONS, id=run_id)
    if run is None or run.fence != taken[0]:
        return None
    if run.parent_step_id is not None:
        notify_child_changed(run.parent_step_id)
    return run


def _build_unlimited_sql() -> str:
    """Return the condition that no limit on concurrent runs applies to a run."""
    if settings.USER_CONCURRENT_RUNS:
        return "1 = 0"
    return """agent_limit IS NULL AND NOT EXISTS (
        SELECT 1 FROM runs_provider WHERE runs_provider.id = runs_run.provider_key
        AND runs_provider.max_concurrent_runs IS NOT NULL)"""


def _status_list_sql(statuses: Sequence[str]) -> str:
    """Return our status constants as SQL; NULL, which matches nothing, if empty."""
    return ", ".join(f"'{status}'" for status in statuses) or "NULL"


def _build_entry_columns(status: str) -> dict[str, Any]:
    if status == Status.QUEUED:
        return {
            "queued_at": build_sql_time(),
            "enqueued_at": build_sql_time(),
            "ended_at": None,
            "stop_reason": "",
            "error_code": "",
            "error_message": "",
            "finish_reason": "",
        }
    if status in (
        Status.SUCCEEDED,
        Status.LIMIT_REACHED,
        Status.FAILED,
        Status.CANCELED,
    ):
        return {
            "ended_at": build_sql_time(),
            **({"trace_due_at": build_sql_time()} if settings.OTLP_ENDPOINT else {}),
            "available_at": None,
            "waiting_for": "",
            "waiting_provider": None,
            "waiting_since": None,
        }
    return {}
