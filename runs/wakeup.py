"""Wake workers; the only module below the tasks that knows Celery."""

import logging
from functools import partial

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

EXECUTE_RUN_TASK = "runs.execute_run"
DELIVER_TASK = "runs.deliver"


def enqueue_run(run_id: int) -> None:
    """Wake a worker for `run_id` after the commit, or leave it to a sweep."""
    transaction.on_commit(partial(_send_task, EXECUTE_RUN_TASK, run_id), robust=True)


def enqueue_delivery(delivery_id: int) -> None:
    """Wake a worker for a delivery after the commit, or leave it to a sweep."""
    transaction.on_commit(partial(_send_task, DELIVER_TASK, delivery_id), robust=True)


def _send_task(task: str, key: int) -> None:
    try:
        current_app.send_task(task, args=[key], ignore_result=True)
    except (OperationalError, OSError) as error:
        logger.warning("could not enqueue %s %s, a sweep will: %s", task, key, error)
