"""Wake workers; the only module below the tasks that knows Celery."""

import logging
from functools import partial

from celery import current_app
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

EXECUTE_RUN_TASK = "runs.execute_run"
DELIVER_TASK = "runs.deliver"

DELIVERIES = "deliveries"
"""The queue of webhook deliveries; those of runs are in `Run.Queue`."""

PRIORITIES = (0, 3, 6, 9)
"""Each is a list of its own in Redis; workers empty the first one first."""
FIRST_RUNS = (10, 100, 1000)
"""Runs of one user with the first, second and third priority."""
PRIORITY_SEPARATOR = "\x06\x16"


def find_priority(ahead: int) -> int:
    """Return the priority of a run whose owner has so many unfinished runs ahead.

    A user's first runs pass the thousandth of another one, which came before.
    """
    return PRIORITIES[sum(ahead >= most for most in FIRST_RUNS)]


def enqueue_run(run_id: int, *, queue: str = "live", ahead: int = 0) -> None:
    """Wake a worker for `run_id` after the commit, or leave it to a sweep.

    `ahead` counts the unfinished runs of the same user in the same queue.
    """
    send = partial(_send_task, EXECUTE_RUN_TASK, run_id, queue, find_priority(ahead))
    transaction.on_commit(send, robust=True)


def enqueue_delivery(delivery_id: int) -> None:
    """Wake a worker for a delivery after the commit, or leave it to a sweep."""
    send = partial(_send_task, DELIVER_TASK, delivery_id, DELIVERIES, PRIORITIES[0])
    transaction.on_commit(send, robust=True)


def list_redis_lists() -> list[str]:
    suffixes = [f"{PRIORITY_SEPARATOR}{each}" if each else "" for each in PRIORITIES]
    return [f"{queue}{suffix}" for queue in settings.QUEUES for suffix in suffixes]


def _send_task(task: str, key: int, queue: str, priority: int) -> None:
    try:
        current_app.send_task(
            task, args=[key], ignore_result=True, queue=queue, priority=priority
        )
    except (OperationalError, OSError) as error:
        logger.warning("could not enqueue %s %s, a sweep will: %s", task, key, error)
