"""The Celery tasks: each is a door to one service."""

from celery import shared_task

from runs.bell import DELIVER, TASK
from runs.services.deliver import deliver
from runs.services.execute_run import execute_run


@shared_task(name=TASK)
def execute_run_task(run_id: int) -> None:
    """Execute what is left to do of a run; a second delivery does nothing."""
    execute_run(run_id)


@shared_task(name=DELIVER)
def deliver_task(delivery_id: int) -> None:
    """Tell a webhook what became of a run; a second bell does nothing."""
    deliver(delivery_id)
