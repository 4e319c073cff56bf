"""Progress that running tool calls report: one thread per process writes the newest.

A page or log of progress is a hint, so a report that cannot be written is dropped.
"""

import logging
import os
import threading
import time
from functools import cache
from typing import NamedTuple

from django.db import Error as DatabaseError
from django.db import connection

from runs.models import AgentStep
from runs.store.claims import ClaimedRun, LeaseLost
from runs.store.commits import INCREMENT_SEQ
from runs.store.fenced_commit import Commit, write_commit
from runs.store.transitions import notify_run_changed

WRITE_INTERVAL_SECONDS = 1.0
"""Between two writes; of several reports of a step in between, the last is written."""
MAX_ROUNDS = 5
"""A step that is not stored after so many rounds never will be."""
MAX_CHARACTERS = 200

logger = logging.getLogger(__name__)


class ProgressReport(NamedTuple):
    claim: ClaimedRun
    text: str
    rounds: int = 0
    """How often it has waited for its step to be stored."""


def report_step_progress(claim: ClaimedRun, step: AgentStep, text: str) -> None:
    """Show a text, free of secrets, at a running step soon; never wait or raise."""
    step.progress = " ".join(text.split())[:MAX_CHARACTERS]
    report = ProgressReport(claim, step.progress)
    _writer_for_process(os.getpid()).put(step, report)


@cache
def _writer_for_process(pid: int) -> "ProgressWriter":
    return ProgressWriter()


class ProgressWriter(threading.Thread):
    """Writes the newest report of each step, with a pause after each round."""

    def __init__(self) -> None:
        super().__init__(name="progress", daemon=True)
        self._lock, self._has_reports = threading.Lock(), threading.Event()
        self._newest: dict[int, tuple[AgentStep, ProgressReport]] = {}
        """By identity: the run's thread may not have stored the step yet."""
        self.start()

    def put(self, step: AgentStep, report: ProgressReport) -> None:
        with self._lock:
            self._newest[id(step)] = (step, report)
        self._has_reports.set()

    def _keep(self, step: AgentStep, report: ProgressReport) -> None:
        """Try again in the next round, unless there is a newer report."""
        with self._lock:
            waited = report._replace(rounds=report.rounds + 1)
            self._newest.setdefault(id(step), (step, waited))
        self._has_reports.set()

    def run(self) -> None:
        while True:
            self._has_reports.wait()
            self._has_reports.clear()
            with self._lock:
                reports, self._newest = self._newest, {}
            for step, report in reports.values():
                if step.is_answered:
                    continue
                if step.pk is None:
                    if report.rounds < MAX_ROUNDS:
                        self._keep(step, report)
                    continue
                try:
                    write_progress(step.pk, report)
                except LeaseLost:
                    pass  # the run is over, or another worker has it
                except DatabaseError as error:
                    logger.warning(
                        "progress of step %s not written: %s", step.pk, error
                    )
            connection.close()
            time.sleep(WRITE_INTERVAL_SECONDS)


def write_progress(step_id: int, report: ProgressReport) -> None:
    """Store the text of a report; raise `LeaseLost` if the run is no longer ours."""
    claim = report.claim
    step = AgentStep(pk=step_id, progress=report.text)
    fence = [claim.run_id, claim.fence]
    seq = write_commit(
        Commit(INCREMENT_SEQ, fence, changed=[step], columns=("progress",))
    )
    notify_run_changed(claim.run_id, seq)
