"""How many runs one user may have at the same time."""

from django.conf import settings
from django.contrib.auth.models import User

from runs.services.errors import TooManyRuns
from tools.statement import execute_statement

COUNT_RUNS = """
    SELECT count(*) FROM runs_run
    WHERE owner_id = %s AND status IN ('queued', 'running', 'waiting')
"""
"""Runs that wait for a person cost nothing meanwhile."""


def check_run_limit(user: User) -> None:
    """Raise `TooManyRuns`; requests at the same moment may get a few past it."""
    limit = settings.USER_RUNS
    if not limit:
        return
    ((count,),) = execute_statement(COUNT_RUNS, [user.pk]).rows
    if count >= limit:
        raise TooManyRuns(limit)
