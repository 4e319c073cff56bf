"""The thread in each worker that keeps a process which advances experiments.

Starting and scoring runs takes almost as much of a processor as executing them. In a
process of its own, which exists only while there are experiments, it delays neither
these runs nor live ones.
"""

import logging
import os
import subprocess
import sys
import threading
import time

from django.db import DatabaseError, InterfaceError, connection

from runs.models import Run
from runs.services.experiments.claim import has_free_experiments
from runs.store.claims import WorkerState
from runs.store.site_pause import is_site_paused

logger = logging.getLogger(__name__)

PROGRAM = "agentsite.worker.experiments"
LOOK_SECONDS = 1.0
"""Between two looks for work, and at the process."""
RESTART_SECONDS = 15.0
"""After an error of the process, before another one is started."""
END_SECONDS = 10.0
"""For the process to end its turn when the worker ends."""


def run_experiment_loop(process: WorkerState, stop: threading.Event) -> None:
    """Have experiments advanced until `stop` is set."""
    child: subprocess.Popen[bytes] | None = None
    not_before = 0.0
    try:
        while not stop.wait(LOOK_SECONDS) and not process.is_stopping.is_set():
            if child is not None and child.poll() is not None:
                if child.returncode:
                    logger.error(
                        "the process that advances experiments failed (exit code %s); "
                        "another one is started in %g s",
                        child.returncode,
                        RESTART_SECONDS,
                    )
                    not_before = time.monotonic() + RESTART_SECONDS
                child = None
            if child is None and time.monotonic() > not_before and has_work(process):
                child = start_process()
    finally:
        if child is not None:
            end_process(child)


def has_work(process: WorkerState) -> bool:
    """Whether this worker should start a process."""
    if Run.Queue.BULK not in process.queues:
        return False
    try:
        return has_free_experiments() and not is_site_paused()
    except (DatabaseError, InterfaceError) as error:
        logger.warning("no experiment, database not available: %s", error)
        return False
    finally:
        connection.close()


def start_process() -> "subprocess.Popen[bytes]":
    """Start the process; its output goes where the worker's does."""
    return subprocess.Popen(  # noqa: S603  # our own program, by this interpreter
        [sys.executable, "-m", PROGRAM],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "AGENTSITE_ALIVE_FILE": ""},
    )


def end_process(child: "subprocess.Popen[bytes]") -> None:
    """Let it end its turn, or kill it: another one claims its experiments later."""
    child.terminate()
    try:
        child.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
