"""How many runs one user may have at the same time."""

from django.conf import settings
from django.contrib.auth.models import User

from runs.models import Run
from runs.services.errors import TooManyRuns

COUNTED_STATUSES = ("queued", "running", "waiting")
"""Runs that wait for a person cost nothing meanwhile."""


def check_run_limit(user: User) -> None:
    """Raise `TooManyRuns`; requests at the same moment may get a few past it."""
    limit = settings.USER_RUNS
    if not limit:
        return
    runs = Run.objects.filter(owner=user, status__in=COUNTED_STATUSES)
    if runs.count() >= limit:
        raise TooManyRuns(limit)
