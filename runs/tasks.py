"""The Celery task: a door to one service."""

from celery import shared_task

from runs.bell import TASK
from runs.services.execute_run import execute_run


@shared_task(name=TASK)
def execute_run_task(run_id: int) -> None:
    """Execute what is left to do of a run; a second delivery does nothing."""
    execute_run(run_id)
