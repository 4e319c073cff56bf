"""When a run whose lease expired may be claimed again, and how often.

A run that kills its worker at the same step again and again is given up. So that a
series of kills with another cause does not end innocent runs, they pause before the
last try.
"""

from django.conf import settings
from django.db.models import Q

from runs.models import Run
from runs.store.database_clock import SqlTime, build_sql_time, db_time_from_now

MAX_RECOVERIES = 4
"""Lost leases in a row, without a new step, after which a run fails."""
BEFORE_LAST_TRY = MAX_RECOVERIES - 2
"""Recoveries of a run whose next claim is its last try."""
PAUSE_LEASES = 10
"""Length of the pause before the last try, in leases."""


def build_lost_filter(*, since: float = 0.0) -> Q:
    """Match runs that a worker may recover, for at least `since` seconds."""
    pause = PAUSE_LEASES * settings.LEASE_SECONDS
    is_due = Q(lease_until__lt=db_time_from_now(-since)) & (
        ~Q(recoveries=BEFORE_LAST_TRY)
        | Q(lease_until__lt=db_time_from_now(-since - pause))
    )
    return Q(status=Run.Status.RUNNING) & is_due


def build_lost_condition() -> SqlTime:
    """Return the same condition as SQL, with its values."""
    now = build_sql_time()
    paused = build_sql_time(-PAUSE_LEASES * settings.LEASE_SECONDS)
    return SqlTime(
        f"status = 'running' AND lease_until < {now.sql} AND "
        f"(recoveries <> {BEFORE_LAST_TRY} OR lease_until < {paused.sql})",
        (*now.values, *paused.values),
    )
