"""Signs of life: one thread a worker process renews leases and hears of cancels."""

import logging
import threading
import time

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models.functions import Now

from runs.models import Run, Worker
from runs.services.clock import from_now
from runs.services.held import Held, Process
from runs.services.tool_use import take_uses
from tools.kinds import left_behind
from tools.services import record_usage

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""How often cancels and lost fences are looked for."""


def beat(process: Process) -> bool:
    """Renew the leases of all runs whose threads are alive; False if some were left.

    A run whose row is being written to is left for the next beat: who waited for it
    here, holding the rows of others, could wait in a circle with a child that ends.
    """
    alive = [held.run_id for held in process.now() if held.is_alive()]
    renewed = 0
    if alive:
        rows = Run.objects.filter(
            pk__in=alive, worker=process.worker, status=Run.Status.RUNNING
        )
        with transaction.atomic():
            free = rows.select_for_update(skip_locked=True).values_list("pk", flat=True)
            renewed = Run.objects.filter(pk__in=list(free)).update(
                lease_until=from_now(settings.LEASE_SECONDS)
            )
    if process.worker is not None:
        Worker.objects.filter(pk=process.worker.pk).update(
            last_heartbeat=Now(),
            running=len(process.now()),
            left_behind=left_behind.count(),
        )
    return renewed == len(alive)


def look(process: Process) -> None:
    """Tell each run's thread if it was cancelled or belongs to somebody else now."""
    held = {one.run_id: one for one in process.now()}
    if not held:
        return
    rows = Run.objects.filter(pk__in=held).values_list(
        "pk", "fence", "status", "cancel_requested_at"
    )
    for run_id, fence, status, cancel_requested_at in rows:
        _tell(held[run_id], fence, status, is_cancelled=cancel_requested_at is not None)


def _tell(held: Held, fence: int, status: str, *, is_cancelled: bool) -> None:
    if fence != held.fence:
        held.end("lost")
    elif status == Run.Status.RUNNING and is_cancelled:
        held.end("cancelled")


def write_usage() -> None:
    """Store how tools were used since the last batch."""
    uses = take_uses()
    if uses:
        record_usage(uses)


def keep_beating(process: Process, stop: threading.Event) -> None:
    """Beat and look until `stop` is set; a database that is away is waited for."""
    next_beat = 0.0
    while not stop.wait(LOOK_SECONDS):
        try:
            look(process)
            if time.monotonic() >= next_beat:
                is_whole = beat(process)
                write_usage()
                pause = settings.HEARTBEAT_SECONDS if is_whole else LOOK_SECONDS
                next_beat = time.monotonic() + pause
        except (DatabaseError, InterfaceError) as error:
            logger.warning("no heartbeat, the database is away: %s", error)
            connection.close()
            next_beat = 0.0
        except Exception:  # a heart that stops would lose every run of the process
            logger.exception("a heartbeat failed")
    connection.close()
