"""Bells: they wake a worker; the only module below tasks that knows Celery."""

import logging
from functools import partial

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

TASK = "runs.execute_run"
DELIVER = "runs.deliver"


def ring(run_id: int) -> None:
    """Wake a worker for `run_id` after the commit; a lost bell costs seconds only."""
    transaction.on_commit(partial(_send, TASK, run_id), robust=True)


def ring_delivery(delivery_id: int) -> None:
    """Wake a worker for a delivery after the commit; a lost bell costs seconds only."""
    transaction.on_commit(partial(_send, DELIVER, delivery_id), robust=True)


def _send(task: str, key: int) -> None:
    try:
        current_app.send_task(task, args=[key], ignore_result=True)
    except (OperationalError, OSError) as error:
        logger.warning("no bell %s %s, a sweep will find it: %s", task, key, error)
