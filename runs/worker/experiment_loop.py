"""The thread in each worker that keeps two processes while there are experiments.

One starts and scores their runs, which takes three quarters of the processor time of
executing them. The other one executes the runs, unless this worker does nothing else:
threads of one process share Python's interpreter lock, so live runs would wait.
"""

import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from runs.models import Run
from runs.services.experiments.claim import has_free_experiments
from runs.store.claims import WorkerState
from runs.store.site_pause import is_site_paused

logger = logging.getLogger(__name__)

ADVANCE_PROGRAM = "agentsite.worker.experiments"
EXECUTE_PROGRAM = "agentsite.worker.bulk"
LOOK_SECONDS = 1.0
"""Between two looks for work, and at the processes."""
RESTART_SECONDS = 15.0
"""After an error of a process, before another one is started."""
END_SECONDS = 15.0
"""For the processes to end their work when the worker ends, which takes at most 20."""
SILENT_SECONDS = 15.0
"""After the last heartbeat of the helper, before the worker reads its queue again."""
BULK = frozenset[str]({Run.Queue.BULK})


class Helper:
    """A program of which at most one process runs."""

    def __init__(self, program: str, *arguments: str, is_server: bool = False) -> None:
        self.command = [program, str(os.getpid()), *arguments]
        self.is_server = is_server
        """Whether it shows that it is alive, and ends only when it is asked to."""
        self.alive_file = Path(tempfile.gettempdir(), f"{program}.{os.getpid()}")
        self.touched: float | None = None
        self.touched_at = 0.0
        """Monotonic time at which the file was seen to have changed."""
        self.child: subprocess.Popen[bytes] | None = None
        self.is_ending = False
        self.not_before = 0.0

    def is_running(self) -> bool:
        """Whether there is a process; report one that has failed."""
        if self.child is not None and self.child.poll() is not None:
            if not self.is_ending and (self.child.returncode or self.is_server):
                self.pause(f"failed (exit code {self.child.returncode})")
            self.child = None
        return self.child is not None

    def start(self) -> None:
        if time.monotonic() < self.not_before:
            return
        self.alive_file.unlink(missing_ok=True)
        self.touched, self.is_ending = None, False
        try:
            self.child = start_process(
                self.command, alive_file=self.alive_file if self.is_server else None
            )
        except OSError as error:
            self.pause(f"could not be started: {error}")

    def pause(self, problem: str) -> None:
        logger.error(
            "the process %s %s; another one is started in %g s",
            self.command[0],
            problem,
            RESTART_SECONDS,
        )
        self.not_before = time.monotonic() + RESTART_SECONDS

    def is_serving(self) -> bool:
        """Whether it has shown lately that it is alive; a frozen one is killed."""
        if self.child is None or self.is_ending:
            return False
        try:
            touched = self.alive_file.stat().st_mtime
        except OSError:  # it has not started yet
            return False
        now = time.monotonic()
        if touched != self.touched:
            self.touched, self.touched_at = touched, now
        if now - self.touched_at > settings.HANG_SECONDS:
            self.child.kill()
        return now - self.touched_at < SILENT_SECONDS

    def end(self) -> None:
        """Ask the process to end, without waiting for it."""
        if self.child is not None and not self.is_ending:
            self.is_ending = True
            self.child.terminate()

    def wait(self, until: float) -> None:
        """Let it end its work, or kill it: leases make others continue that later."""
        if self.child is not None:
            try:
                self.child.wait(max(until - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        self.alive_file.unlink(missing_ok=True)


def run_experiment_loop(process: WorkerState, stop: threading.Event) -> None:
    """Have experiments advanced until `stop` is set."""
    if process.is_helper:
        end_with_parent(stop)
        return
    advancing = Helper(ADVANCE_PROGRAM)
    executing = Helper(EXECUTE_PROGRAM, str(process.threads), is_server=True)
    try:
        while not stop.wait(LOOK_SECONDS) and not process.is_stopping.is_set():
            if not advancing.is_running() and has_work(process):
                advancing.start()
            if process.queues > BULK:
                keep_executing(executing, wanted=advancing.is_running())
                process.delegated_queues = (
                    BULK if executing.is_serving() else frozenset()
                )
    finally:
        process.delegated_queues = frozenset()
        until = time.monotonic() + END_SECONDS
        for helper in (advancing, executing):
            helper.end()
        for helper in (advancing, executing):
            helper.wait(until)


def keep_executing(executing: Helper, *, wanted: bool) -> None:
    """Have the process run as long as there are experiments."""
    if not executing.is_running():
        if wanted:
            executing.start()
    elif not wanted:
        executing.end()


def end_with_parent(stop: threading.Event) -> None:
    """Let a helper end when its worker has: not every system kills it then."""
    parent = os.getppid()
    while not stop.wait(LOOK_SECONDS):
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)
            return


def has_work(process: WorkerState) -> bool:
    if Run.Queue.BULK not in process.queues:
        return False
    try:
        return has_free_experiments() and not is_site_paused()
    except (DatabaseError, InterfaceError) as error:
        logger.warning("no experiment, database not available: %s", error)
        return False
    finally:
        connection.close()


def start_process(
    command: Sequence[str], *, alive_file: Path | None
) -> "subprocess.Popen[bytes]":
    """Start a program of ours; its output goes where the worker's does."""
    own = {"AGENTSITE_ALIVE_FILE": str(alive_file or ""), "NOTIFY_SOCKET": ""}
    return subprocess.Popen(  # noqa: S603  # by this interpreter
        [sys.executable, "-m", *command],
        stdin=subprocess.DEVNULL,
        env={**os.environ, **own},
    )
