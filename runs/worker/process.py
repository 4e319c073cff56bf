"""One worker process: its row, its two threads, and its orderly end."""

import logging
import os
import platform
import socket
import threading
import uuid
from importlib.metadata import PackageNotFoundError, version

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.db.models.functions import Now

from runs.models import Worker
from runs.services.heartbeat import beat, keep_beating, write_usage
from runs.services.held import Process, process
from runs.services.sweep import keep_sweeping
from tools.kinds import left_behind
from tools.kinds.cpython_probe import flaw_of_sandbox

logger = logging.getLogger(__name__)

END_SECONDS = 20.0
"""After which a process that was told to end does, whatever still hangs in it."""
MOST_LEFT_BEHIND = 20
"""Hanging function tools at which a worker drains and is started anew."""

_stop = threading.Event()


def start_worker(*, pool: str, threads: int) -> None:
    """Write this process down as a worker and begin to show signs of life."""
    process.threads = threads
    process.worker = _register(pool=pool, threads=threads)
    for work in (keep_beating, keep_sweeping, _watch_left_behind):
        threading.Thread(
            target=work, args=(process, _stop), name=work.__name__, daemon=True
        ).start()
    threading.Thread(target=_probe_sandbox, name="_probe_sandbox", daemon=True).start()


def _probe_sandbox() -> None:
    """Say at the start, not at the first call, that CPython cannot be used here."""
    if settings.CPYTHON and (flaw := flaw_of_sandbox()):
        logger.error("%s", flaw)


def _register(*, pool: str, threads: int) -> Worker:
    host = socket.gethostname() or platform.node()
    return Worker.objects.create(
        name=f"{host}-{os.getpid()}-{uuid.uuid4().hex[:8]}",
        host=host,
        pid=os.getpid(),
        pool=pool,
        threads=threads,
        version=_version(),
        started_at=Now(),
        last_heartbeat=Now(),
    )


def stop_worker() -> None:
    """Take no more; every run goes back at its next commit; end after 20 seconds."""
    process.is_stopping.set()
    timer = threading.Timer(END_SECONDS, os._exit, args=(0,))
    timer.daemon = True
    timer.start()


def leave() -> None:
    """Say goodbye: the last heartbeat, and what was not written yet."""
    _stop.set()
    try:
        beat(process)
        write_usage()
        if process.worker is not None:
            Worker.objects.filter(pk=process.worker.pk).update(stopped_at=Now())
    except (DatabaseError, InterfaceError) as error:
        logger.warning("left without goodbye, the database is away: %s", error)
    finally:
        connection.close()


def _watch_left_behind(process: Process, stop: threading.Event) -> None:
    """End the process when too many of its threads hang in other people's code."""
    while not stop.wait(5):
        if left_behind.count() >= MOST_LEFT_BEHIND:
            logger.error("%s tools hang; this worker restarts", left_behind.count())
            stop_worker()
            os.kill(os.getpid(), 15)
            return


def _version() -> str:
    try:
        return version("agentsite")
    except PackageNotFoundError:
        return ""
