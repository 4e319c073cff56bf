"""One worker process: its row, its loops, and its graceful shutdown."""

import logging
import os
import platform
import socket
import threading
import uuid
from collections.abc import Collection

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.db.models.functions import Now

from runs.models import Worker
from runs.services.telemetry.export import read_release
from runs.store.claims import WorkerState, worker_state
from runs.store.database_clock import site_clock
from runs.store.metric_counters import flush_counters
from runs.worker.background_loops import (
    run_email_loop,
    run_retention_loop,
    run_scoring_loop,
    run_trace_export_loop,
)
from runs.worker.experiment_loop import run_experiment_loop
from runs.worker.heartbeat import flush_tool_usage, run_heartbeat_loop, send_heartbeat
from runs.worker.sweep import run_sweep_loop
from tools.sandbox import abandoned_calls as abandoned_calls
from tools.sandbox.cpython_probe import find_sandbox_flaw

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 20.0
"""Seconds after which a process that is shutting down exits, even with hung threads."""

MAX_CLOCK_DIFFERENCE = 30.0
"""Seconds between this machine's clock and the database's; more is reported."""

_stop = threading.Event()
_experiments = threading.Thread(
    target=lambda: run_experiment_loop(worker_state, _stop),
    name="run_experiment_loop",
    daemon=True,
)
"""Has processes, which end before this one does."""


def start_worker(*, pool: str, threads: int, queues: Collection[str]) -> None:
    """Register this process as a worker and start its heartbeat."""
    worker_state.threads, worker_state.queues = threads, frozenset(queues)
    capacity = worker_state.compute_capacity()
    worker_state.worker = _register(pool=pool, threads=capacity)
    warn_about_wrong_clock()
    for work in (
        run_heartbeat_loop,
        run_sweep_loop,
        run_retention_loop,
        run_scoring_loop,
        run_trace_export_loop,
        run_email_loop,
        _watch_abandoned_calls,
    ):
        threading.Thread(
            target=work, args=(worker_state, _stop), name=work.__name__, daemon=True
        ).start()
    _experiments.start()
    threading.Thread(target=_probe_sandbox, name="_probe_sandbox", daemon=True).start()


def _probe_sandbox() -> None:
    """Report at the start, not at the first call, if the sandbox does not work here."""
    if settings.CPYTHON and (flaw := find_sandbox_flaw()):
        logger.error("%s", flaw)


def _register(*, pool: str, threads: int) -> Worker:
    queues = [each for each in settings.QUEUES if each in worker_state.queues]
    host = socket.gethostname() or platform.node()
    return Worker.objects.create(
        name=f"{host}-{os.getpid()}-{uuid.uuid4().hex[:8]}",
        host=host,
        pid=os.getpid(),
        pool=pool,
        queues=",".join(queues),
        threads=threads,
        version=read_release(),
        started_at=Now(),
        last_heartbeat=Now(),
    )


def warn_about_wrong_clock() -> None:
    """Compare the clock of this machine with the database's; report if it is wrong."""
    seconds = site_clock.compare().total_seconds()
    if abs(seconds) > MAX_CLOCK_DIFFERENCE:
        logger.warning(
            "the clock of this machine differs from the database's by %.0f s; "
            "times of steps are corrected by that, but not those of logs",
            seconds,
        )


def drain_worker() -> None:
    """Accept no more runs and requeue the others at their next commit."""
    worker_state.is_stopping.set()
    timer = threading.Timer(DRAIN_SECONDS, os._exit, args=(0,))
    timer.daemon = True
    timer.start()


def unregister_worker() -> None:
    """Send the last heartbeat and flush what is buffered."""
    _stop.set()
    if _experiments.is_alive():
        _experiments.join()  # not longer than `drain_worker` lets this process live
    try:
        send_heartbeat(worker_state)
        flush_tool_usage()
        flush_counters()
        if worker_state.worker is not None:
            Worker.objects.filter(pk=worker_state.worker.pk).update(stopped_at=Now())
    except (DatabaseError, InterfaceError) as error:
        logger.warning("worker not unregistered, database not available: %s", error)
    finally:
        connection.close()


def _watch_abandoned_calls(process: WorkerState, stop: threading.Event) -> None:
    """Restart the process when too many of its threads hang in tool code."""
    while not stop.wait(5):
        if abandoned_calls.has_too_many_abandoned_calls():
            logger.error(
                "%s tools hang; this worker restarts",
                abandoned_calls.count_abandoned_calls(),
            )
            drain_worker()
            os.kill(os.getpid(), 15)
            return
