"""The sweeper: what no bell reached is rung again, by workers with free slots."""

import logging
import threading

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from runs import bell
from runs.models import Run
from runs.models.runs import UNFINISHED
from runs.services.clock import from_now
from runs.services.deliver import ring_due_deliveries
from runs.services.editing_spell import end_quiet_spells
from runs.services.expire_questions import expire_questions
from runs.services.file_runs import file_runs
from runs.services.held import Process
from runs.services.move import move, wake_parent
from runs.services.prune_deliveries import Pruning
from runs.services.sample_queue import sample_queue
from runs.services.start_due import start_due

logger = logging.getLogger(__name__)

RUNG_SECONDS = 10.0
"""How long a bell counts before it is rung again."""


def sweep(*, free: int) -> int:
    """Ring for at most `free` runs nobody works on, oldest first; return how many."""
    _wake_waiting()
    expire_questions()
    if free <= 0:
        return 0
    rung = 0
    rows = Run.objects.filter(_claimable() & _not_rung()).order_by("queued_at")
    for run_id in rows.values_list("pk", flat=True)[:free]:
        with transaction.atomic():
            took = Run.objects.filter(Q(pk=run_id) & _claimable() & _not_rung()).update(
                rung_at=Now()
            )
            if took:
                bell.ring(run_id)
                rung += 1
    return rung


def _wake_waiting() -> None:
    """Put runs whose retry time has come, or whose children are over, into the queue.

    The end of the last child does the latter; this finds what was lost nevertheless.
    """
    due = Run.objects.filter(status=Run.Status.WAITING, not_before__lte=Now())
    for run in due[:100]:
        move(
            run,
            to=Run.Status.QUEUED,
            only_from=(Run.Status.WAITING,),
            not_before=None,
        )
    child = Run.objects.filter(parent_step__run=OuterRef("pk"), status__in=UNFINISHED)
    alone = Run.objects.filter(status=Run.Status.WAITING, not_before=None)
    for run in alone.exclude(Exists(child))[:100]:
        wake_parent(run)


def _claimable() -> Q:
    return Q(status=Run.Status.QUEUED) | Q(
        status=Run.Status.RUNNING, lease_until__lt=Now()
    )


def _not_rung() -> Q:
    """Not rung lately, or rung before the lease ran out."""
    return (
        Q(rung_at=None)
        | Q(rung_at__lt=from_now(-RUNG_SECONDS))
        | Q(status=Run.Status.RUNNING, rung_at__lt=F("lease_until"))
    )


def keep_sweeping(process: Process, stop: threading.Event) -> None:
    """Sweep until `stop` is set.

    After a database error one lease is waited, so that live workers renew first.
    """
    pause, pruning = settings.SWEEP_SECONDS, Pruning()
    while not stop.wait(pause):
        pause = settings.SWEEP_SECONDS
        try:
            sweep(free=process.threads - len(process.now()))
            start_due()
            file_runs()
            sample_queue()
            end_quiet_spells()
            ring_due_deliveries()
            pruning.go_on()
        except (DatabaseError, InterfaceError) as error:
            logger.warning("no sweep, the database is away: %s", error)
            connection.close()
            pause = settings.LEASE_SECONDS
        except Exception:  # a sweeper that ends would leave runs lying
            logger.exception("a sweep failed")
    connection.close()
