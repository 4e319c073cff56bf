"""How many runs one user may have at the same time."""

from django.conf import settings
from django.contrib.auth.models import User

from runs.models import Run
from runs.services.errors import TooManyRuns
from tools.statement import execute_statement

COUNT_RUNS = """
    SELECT count(*), count(*) FILTER (WHERE queue = %s) FROM runs_run
    WHERE owner_id = %s AND status IN ('queued', 'running', 'waiting')
"""
"""Runs that wait for a person cost nothing meanwhile."""


def check_run_limit(user: User, *, queue: str = Run.Queue.LIVE) -> int:
    """Return how many unfinished runs the user has in the queue.

    Raises `TooManyRuns`; requests at the same moment may get a few past it.
    """
    every, ahead = _count_runs(user, queue)
    limit = settings.USER_RUNS
    if limit and every >= limit:
        raise TooManyRuns(limit)
    return ahead


def count_runs_ahead(user: User, *, queue: str) -> int:
    """Return how many unfinished runs the user has in the queue."""
    return _count_runs(user, queue)[1]


def _count_runs(user: User, queue: str) -> tuple[int, int]:
    ((every, ahead),) = execute_statement(COUNT_RUNS, [queue, user.pk]).rows
    return every, ahead
