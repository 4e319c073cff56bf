"""The Celery tasks; each calls one service."""

from celery import shared_task
from structlog.contextvars import bound_contextvars

from runs.services.webhooks.deliver import send_delivery
from runs.wakeup import DELIVER_TASK, EXECUTE_RUN_TASK
from runs.worker.execute_run import execute_run


@shared_task(name=EXECUTE_RUN_TASK)
def execute_run_task(run_id: int) -> None:
    """Execute the rest of a run; a second delivery of the task does nothing."""
    execute_run(run_id)


@shared_task(name=DELIVER_TASK)
def deliver_task(delivery_id: int) -> None:
    """Send a webhook delivery; a second delivery of the task does nothing."""
    with bound_contextvars(delivery=delivery_id):
        send_delivery(delivery_id)
