"""The sweeper: workers with free slots enqueue again what got lost."""

import logging
import threading
import time
from collections.abc import Collection

from django.conf import settings
from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    connection,
    transaction,
)
from django.db.models import Count, Exists, F, OuterRef, Q, Window
from django.db.models.functions import Now, RowNumber

from runs import wakeup
from runs.models import Run
from runs.models.runs import UNFINISHED_STATUSES
from runs.services.agents.edit_sessions import end_idle_edit_sessions
from runs.services.approvals.expire import expire_approvals
from runs.services.hooks.manage import HookLogPruner
from runs.services.providers.outages import sweep_outages
from runs.services.schedules.fire import fire_due_schedules
from runs.services.search.index_runs import index_runs
from runs.services.webhooks.deliver import enqueue_due_deliveries
from runs.services.webhooks.prune import DeliveryPruner
from runs.store.claims import WorkerState
from runs.store.database_clock import db_time_from_now
from runs.store.limits import sweep_limits
from runs.store.recovery import build_lost_filter
from runs.store.site_pause import is_site_paused
from runs.store.transitions import transition, wake_parent
from runs.worker.sample_queue import sample_queue
from tools.openapi.uploads import UploadCleaner

logger = logging.getLogger(__name__)

REENQUEUE_SECONDS = 10.0
"""Seconds after which a run that was not claimed is enqueued again."""


MIN_SLOW_SECONDS = 2.0
"""Waiting longer for the database, and than a heartbeat, means that it was away."""


def sweep(
    *, free: int, recovers: bool = True, queues: Collection[str] = tuple(Run.Queue)
) -> int:
    """Enqueue at most `free` unclaimed runs of `queues`; return how many.

    Each user's oldest run comes before anyone's second one. Runs whose lease expired
    are among them only if it `recovers`.
    """
    _wake_waiting_runs()
    sweep_limits()
    sweep_outages()
    expire_approvals()
    if free <= 0:
        return 0
    rung = 0
    wanted = _claimable(recovers=recovers) & _not_enqueued_lately()
    rows = Run.objects.filter(wanted, queue__in=queues).annotate(
        turn=Window(RowNumber(), partition_by="owner", order_by="queued_at")
    )
    rows = rows.order_by("turn", "queued_at")
    found = list(rows.values_list("pk", "owner", "queue", "turn")[:free])
    started = count_started_runs({owner for _, owner, *_ in found})
    for run_id, owner, queue, turn in found:
        with transaction.atomic():
            took = Run.objects.filter(Q(pk=run_id) & wanted).update(enqueued_at=Now())
            if took:
                ahead = started.get((owner, queue), 0) + turn - 1
                wakeup.enqueue_run(run_id, queue=queue, ahead=ahead)
                rung += 1
    return rung


def count_started_runs(owners: Collection[int]) -> dict[tuple[int, str], int]:
    """Return how many unfinished runs of each user and queue a worker has or had."""
    if not owners:
        return {}
    statuses = [Run.Status.RUNNING, Run.Status.WAITING]
    rows = Run.objects.filter(owner__in=owners, status__in=statuses).order_by()
    counted = rows.values_list("owner", "queue").annotate(Count("pk"))
    return {(owner, queue): count for owner, queue, count in counted}


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
    alone = Run.objects.filter(
        status=Run.Status.WAITING, available_at=None, waiting_for=""
    )
    for run in alone.exclude(Exists(child))[:100]:
        wake_parent(run)


def _claimable(*, recovers: bool) -> Q:
    queued = Q(status=Run.Status.QUEUED)
    if not recovers:
        return queued
    return queued | build_lost_filter()


def _not_enqueued_lately() -> Q:
    """Not enqueued recently, or enqueued before the lease expired."""
    return (
        Q(enqueued_at=None)
        | Q(enqueued_at__lt=db_time_from_now(-REENQUEUE_SECONDS))
        | Q(status=Run.Status.RUNNING, enqueued_at__lt=F("lease_until"))
    )


def run_sweep_loop(process: WorkerState, stop: threading.Event) -> None:
    """Sweep until `stop` is set.

    For one lease after the database was away it recovers no run, so that live workers
    renew their leases first.
    """
    limit = settings.SWEEP_SECONDS + 5 * settings.HANG_SECONDS
    pruning, uploads = DeliveryPruner(), UploadCleaner()
    hook_log = HookLogPruner()
    process.expect_turn("the sweeper", within=limit)
    while not stop.wait(settings.SWEEP_SECONDS):
        try:
            _reach_database(process)
            if is_site_paused():
                process.swept_at = time.monotonic()
                continue
            free = process.count_free_slots()
            sweep(
                free=free,
                recovers=process.may_recover_runs(),
                queues=process.queues,
            )
            fire_due_schedules()
            index_runs()
            sample_queue()
            end_idle_edit_sessions()
            enqueue_due_deliveries()
            pruning.prune_if_due()
            hook_log.prune_if_due()
            uploads.clean_if_due()
            process.swept_at = time.monotonic()
        except (DatabaseError, InterfaceError) as error:
            logger.warning("no sweep, database not available: %s", error)
            connection.close()
        except Exception:  # without sweeps lost runs stay in the queue
            logger.exception("a sweep failed")
        finally:
            process.expect_turn("the sweeper", within=limit)
    connection.close()


def _reach_database(process: WorkerState) -> None:
    """Ask the database for nothing; slow means that it came back while this waited."""
    began = time.monotonic()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except (OperationalError, InterfaceError):
        process.note_database_away()
        raise
    if time.monotonic() - began > max(settings.HEARTBEAT_SECONDS, MIN_SLOW_SECONDS):
        process.note_database_away()
