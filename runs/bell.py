"""`ring`: wake a worker for a run; the only module below tasks that knows Celery."""

import logging
from functools import partial

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

TASK = "runs.execute_run"


def ring(run_id: int) -> None:
    """Wake a worker for `run_id` after the commit; a lost bell costs seconds only."""
    transaction.on_commit(partial(_send, run_id), robust=True)


def _send(run_id: int) -> None:
    try:
        current_app.send_task(TASK, args=[run_id], ignore_result=True)
    except (OperationalError, OSError) as error:
        logger.warning("no bell for run %s, a sweep will find it: %s", run_id, error)
