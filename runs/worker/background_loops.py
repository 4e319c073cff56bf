"""Threads in each worker for what is not a run: scores, deletion, e-mail and traces."""

import logging
import threading
from collections.abc import Callable

from django.conf import settings

from runs.models import DeletionJob, Run
from runs.services.notifications import send as mail
from runs.services.retention.batches import OpenStage
from runs.services.retention.erase_person import list_person_stages
from runs.services.retention.jobs import claim_job, create_daily_job, run_job
from runs.services.telemetry import export as traces
from runs.store.claims import WorkerState
from runs.store.site_pause import is_site_paused
from runs.worker.log_failures import log_failures
from runs.worker.rule_scoring import IDLE_SECONDS, RuleScoring

logger = logging.getLogger(__name__)

DELETION_SECONDS = 10.0
SENDING_IDLE_SECONDS = 2.0
"""Between two looks while no e-mail and no trace is due."""
SENDING_BUSY_SECONDS = 0.1
AWAY_SECONDS = 5.0
"""After the first failure of a collector; each further one doubles it."""
MAX_AWAY_SECONDS = 60.0


def run_scoring_loop(process: WorkerState, stop: threading.Event) -> None:
    """Score real runs by rules; do nothing in workers without the bulk queue."""
    if Run.Queue.BULK in process.queues:
        repeat_work(
            *(process, stop, RuleScoring().take_turn),
            idle=IDLE_SECONDS,
            undone="no scores",
            failure="a scoring rule could not be advanced",
        )


def run_retention_loop(process: WorkerState, stop: threading.Event) -> None:
    """Carry out deletion jobs; leave one unfinished at a shutdown."""

    def delete() -> float:
        create_daily_job()
        if (job := claim_job()) is not None:
            run_job(job, pause=process.is_stopping.wait, stages=list_stages(job))
        return DELETION_SECONDS

    repeat_work(
        *(process, stop, delete),
        idle=DELETION_SECONDS,
        undone="no deletion",
        failure="a deletion job failed",
    )


def list_stages(job: DeletionJob) -> list[OpenStage] | None:
    """Return the stages of a job; None for those of the retention rules."""
    is_person = job.purpose == DeletionJob.Purpose.PERSON
    return list_person_stages(job) if is_person else None


def run_email_loop(process: WorkerState, stop: threading.Event) -> None:
    """Send notifications; do nothing on a site without e-mail."""
    pruner = mail.NotificationPruner()

    def send() -> float:
        is_busy = mail.send_due_notifications() == mail.BATCH_SIZE
        pruner.prune_if_due()
        return SENDING_BUSY_SECONDS if is_busy else SENDING_IDLE_SECONDS

    if settings.EMAIL_IS_ON:
        repeat_work(
            *(process, stop, send),
            idle=SENDING_IDLE_SECONDS,
            undone="no e-mail sent",
            failure="e-mail could not be sent",
        )


def run_trace_export_loop(process: WorkerState, stop: threading.Event) -> None:
    """Export ended runs as traces; do nothing without a collector."""
    collector = traces.get_collector()
    if collector is None:
        return
    away = 0.0

    def export() -> float:
        nonlocal away
        try:
            is_busy = traces.export_due_runs(collector) == traces.BATCH_SIZE
        except traces.CollectorUnavailable as error:
            away = min(2 * away or AWAY_SECONDS, MAX_AWAY_SECONDS)
            logger.warning("no traces exported, the collector is away: %s", error)
            return away
        away = 0.0
        return SENDING_BUSY_SECONDS if is_busy else SENDING_IDLE_SECONDS

    repeat_work(
        *(process, stop, export),
        idle=SENDING_IDLE_SECONDS,
        undone="no traces exported",
        failure="traces could not be exported",
    )


def repeat_work(
    process: WorkerState,
    stop: threading.Event,
    work: Callable[[], float],
    *,
    idle: float,
    undone: str,
    failure: str,
) -> None:
    """Call `work`, which returns the seconds until its next turn, until `stop` is set.

    Not while the process is stopping or the site is paused. For `undone` and `failure`
    see `log_failures`.
    """
    pause = idle
    while not stop.wait(pause):
        pause = idle
        with log_failures(undone, failure):
            if not process.is_stopping.is_set() and not is_site_paused():
                pause = work()
