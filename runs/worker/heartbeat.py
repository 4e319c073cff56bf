"""Heartbeats: one thread per worker process renews leases and checks for cancels."""

import logging
import threading
import time
from typing import Any

from django.conf import settings
from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    connection,
    transaction,
)
from django.db.models.functions import Now

from runs.models import Run, Worker
from runs.store.claims import ClaimedRun, WorkerState
from runs.store.database_clock import db_time_from_now, site_clock
from runs.store.metric_counters import flush_counters
from runs.store.tool_usage import drain_tool_usage
from tools.definition.record_usage import record_usage
from tools.sandbox import abandoned_calls as abandoned_calls

logger = logging.getLogger(__name__)

CLAIM_CHECK_SECONDS = 1.0
"""Seconds between checks for cancels and lost fences."""


def send_heartbeat(process: WorkerState) -> bool:
    """Renew the leases of all runs with live threads; False if some were skipped.

    A run whose row is locked is skipped until the next heartbeat: waiting for it
    here, while holding the rows of others, could deadlock with a child that ends.
    """
    alive = [claim.run_id for claim in process.list_claims() if claim.is_alive()]
    renewed = 0
    if alive:
        rows = Run.objects.filter(
            pk__in=alive, worker=process.worker, status=Run.Status.RUNNING
        )
        with transaction.atomic():
            free = rows.select_for_update(skip_locked=True).values_list("pk", flat=True)
            renewed = Run.objects.filter(pk__in=list(free)).update(
                lease_until=db_time_from_now(settings.LEASE_SECONDS)
            )
    if process.worker is not None:
        Worker.objects.filter(pk=process.worker.pk).update(
            last_heartbeat=Now(),
            running=len(process.list_claims()),
            waiting=process.model_waits,
            threads=process.compute_capacity(),
            abandoned_calls=abandoned_calls.count_abandoned_calls(),
            **_build_sweep_column(process),
        )
    return renewed == len(alive)


def _build_sweep_column(process: WorkerState) -> dict[str, Any]:
    swept_at = process.swept_at
    if swept_at is None:
        return {}
    return {"last_sweep": db_time_from_now(swept_at - time.monotonic())}


def check_claims(process: WorkerState) -> None:
    """Signal threads whose run was canceled or claimed by another worker."""
    claim = {one.run_id: one for one in process.list_claims()}
    if not claim:
        return
    rows = Run.objects.filter(pk__in=claim).values_list(
        "pk", "fence", "status", "cancel_requested_at"
    )
    for run_id, fence, status, cancel_requested_at in rows:
        _end_if_lost_or_canceled(
            claim[run_id], fence, status, is_canceled=cancel_requested_at is not None
        )


def _end_if_lost_or_canceled(
    claim: ClaimedRun, fence: int, status: str, *, is_canceled: bool
) -> None:
    if fence != claim.fence:
        claim.end("lost")
    elif status == Run.Status.RUNNING and is_canceled:
        claim.end("canceled")


def flush_tool_usage() -> None:
    """Store the tool usage since the last batch."""
    uses = drain_tool_usage()
    if uses:
        record_usage(uses)


def discard_connections() -> None:
    """Close this thread's connection and the idle ones of the pool.

    After a restart of the database all of them are broken, and each would cost a
    heartbeat before it is noticed.
    """
    connection.close()
    pool = getattr(connection, "pool", None)
    if pool is not None:
        pool.drain()


def run_heartbeat_loop(process: WorkerState, stop: threading.Event) -> None:
    """Send heartbeats until `stop` is set; wait for an unavailable database."""
    next_beat = 0.0
    while not stop.wait(CLAIM_CHECK_SECONDS):
        process.expect_turn("the heartbeat", within=2 * settings.HANG_SECONDS)
        try:
            check_claims(process)
            if time.monotonic() >= next_beat:
                is_whole = send_heartbeat(process)
                site_clock.compare()
                flush_tool_usage()
                flush_counters()
                pause = settings.HEARTBEAT_SECONDS if is_whole else CLAIM_CHECK_SECONDS
                next_beat = time.monotonic() + pause
        except (DatabaseError, InterfaceError) as error:
            logger.warning("no heartbeat, database not available: %s", error)
            if isinstance(error, OperationalError | InterfaceError):
                process.note_database_away()
            discard_connections()
            next_beat = 0.0
        except Exception:  # without heartbeats every run of the process is lost
            logger.exception("a heartbeat failed")
    connection.close()
