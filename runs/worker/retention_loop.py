"""The thread in each worker that carries out deletion jobs, one batch at a time."""

import logging
import threading

from django.db import DatabaseError, InterfaceError, connection

from runs.models import DeletionJob
from runs.services.retention.batches import OpenStage
from runs.services.retention.erase_person import list_person_stages
from runs.services.retention.jobs import claim_job, create_daily_job, run_job
from runs.store.claims import WorkerState
from runs.store.site_pause import is_site_paused

logger = logging.getLogger(__name__)

POLL_SECONDS = 10.0


def run_retention_loop(process: WorkerState, stop: threading.Event) -> None:
    """Look for a job until `stop` is set; leave one unfinished at a shutdown."""
    while not stop.wait(POLL_SECONDS):
        try:
            if not process.is_stopping.is_set() and not is_site_paused():
                create_daily_job()
                if (job := claim_job()) is not None:
                    run_job(
                        job, pause=process.is_stopping.wait, stages=list_stages(job)
                    )
        except (DatabaseError, InterfaceError) as error:
            logger.warning("no deletion, database not available: %s", error)
        except Exception:  # runs matter more: the worker goes on
            logger.exception("a deletion job failed")
        connection.close()


def list_stages(job: DeletionJob) -> list[OpenStage] | None:
    """Return the stages of a job; None for those of the retention rules."""
    is_person = job.purpose == DeletionJob.Purpose.PERSON
    return list_person_stages(job) if is_person else None
