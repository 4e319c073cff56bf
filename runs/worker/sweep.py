"""The sweeper: workers with free slots enqueue again what got lost."""

import logging
import threading

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from runs import wakeup as bell
from runs.models import Run
from runs.models.runs import UNFINISHED_STATUSES
from runs.services.agents.edit_sessions import end_idle_edit_sessions
from runs.services.approvals.expire import expire_approvals
from runs.services.providers.outages import sweep_outages
from runs.services.schedules.fire import fire_due_schedules
from runs.services.search.index_runs import index_runs
from runs.services.webhooks.deliver import enqueue_due_deliveries
from runs.services.webhooks.prune import DeliveryPruner
from runs.store.claims import WorkerState
from runs.store.database_clock import db_time_from_now
from runs.store.transitions import transition, wake_parent
from runs.worker.sample_queue import sample_queue

logger = logging.getLogger(__name__)

REENQUEUE_SECONDS = 10.0
"""Seconds after which a run that was not claimed is enqueued again."""


def sweep(*, free: int) -> int:
    """Enqueue at most `free` unclaimed runs, oldest first; return how many."""
    _wake_waiting_runs()
    sweep_outages()
    expire_approvals()
    if free <= 0:
        return 0
    rung = 0
    rows = Run.objects.filter(_claimable() & _not_enqueued_lately()).order_by(
        "queued_at"
    )
    for run_id in rows.values_list("pk", flat=True)[:free]:
        with transaction.atomic():
            took = Run.objects.filter(
                Q(pk=run_id) & _claimable() & _not_enqueued_lately()
            ).update(enqueued_at=Now())
            if took:
                bell.enqueue_run(run_id)
                rung += 1
    return rung


def _wake_waiting_runs() -> None:
    """Queue runs whose retry is due or whose children have all ended.

    The end of the last child does the latter; this finds those that got lost.
    """
    due = Run.objects.filter(status=Run.Status.WAITING, available_at__lte=Now())
    for run in due[:100]:
        transition(
            run,
            to=Run.Status.QUEUED,
            only_from=(Run.Status.WAITING,),
            available_at=None,
        )
    child = Run.objects.filter(
        parent_step__run=OuterRef("pk"), status__in=UNFINISHED_STATUSES
    )
    alone = Run.objects.filter(status=Run.Status.WAITING, available_at=None)
    for run in alone.exclude(Exists(child))[:100]:
        wake_parent(run)


def _claimable() -> Q:
    return Q(status=Run.Status.QUEUED) | Q(
        status=Run.Status.RUNNING, lease_until__lt=Now()
    )


def _not_enqueued_lately() -> Q:
    """Not enqueued recently, or enqueued before the lease expired."""
    return (
        Q(enqueued_at=None)
        | Q(enqueued_at__lt=db_time_from_now(-REENQUEUE_SECONDS))
        | Q(status=Run.Status.RUNNING, enqueued_at__lt=F("lease_until"))
    )


def run_sweep_loop(process: WorkerState, stop: threading.Event) -> None:
    """Sweep until `stop` is set.

    After a database error it waits for one lease, so that live workers renew first.
    """
    pause, pruning = settings.SWEEP_SECONDS, DeliveryPruner()
    while not stop.wait(pause):
        process.expect_turn("the sweeper", within=5 * settings.HANG_SECONDS)
        pause = settings.SWEEP_SECONDS
        try:
            sweep(free=process.threads - len(process.list_claims()))
            fire_due_schedules()
            index_runs()
            sample_queue()
            end_idle_edit_sessions()
            enqueue_due_deliveries()
            pruning.prune_if_due()
        except (DatabaseError, InterfaceError) as error:
            logger.warning("no sweep, database not available: %s", error)
            connection.close()
            pause = settings.LEASE_SECONDS
        except Exception:  # without sweeps lost runs stay in the queue
            logger.exception("a sweep failed")
        process.expect_turn("the sweeper", within=pause + 5 * settings.HANG_SECONDS)
    connection.close()
