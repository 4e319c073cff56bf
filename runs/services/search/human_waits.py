"""How long runs waited for people, so that durations can leave it out."""

from collections.abc import Collection
from datetime import datetime, timedelta

from django.utils import timezone

from runs.models import Decision, Run


def load_human_waits(run_ids: Collection[int]) -> dict[int, float]:
    """Return the seconds that each run waited for decisions; one query.

    Several decisions that are open at once count once. Runs that never waited are
    left out.
    """
    if not run_ids:
        return {}
    now = timezone.now()
    rows = Decision.objects.filter(step__run__in=run_ids).order_by("asked_at")
    waits: dict[int, timedelta] = {}
    until: dict[int, datetime] = {}
    for run_id, asked, answered in rows.values_list("step__run_id", "asked_at", "at"):
        begin = max(asked, until.get(run_id, asked))
        end = max(answered or now, begin)
        waits[run_id] = waits.get(run_id, timedelta()) + (end - begin)
        until[run_id] = end
    return {pk: wait.total_seconds() for pk, wait in waits.items() if wait}


def get_work_seconds(run: Run, waited: float = 0.0) -> float | None:
    """Return how long the run has taken, or took, without `waited` seconds.

    None before its start.
    """
    if run.started_at is None:
        return None
    whole = ((run.ended_at or timezone.now()) - run.started_at).total_seconds()
    return max(whole - waited, 0.0)
