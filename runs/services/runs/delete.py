"""Delete ended runs with all their rows."""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction

from runs.models import Run, RunSearchRow
from runs.models.runs import FINISHED_STATUSES
from runs.services.search.daily_stats import update_daily_stats
from tools.audit.write import write_entry


def delete_runs(runs: Iterable[Run], *, by: User) -> int:
    """Delete the ended runs and return how many; unfinished ones stay.

    Child runs are deleted with their parent, never alone: the parent's record would
    lack the origin of an answer. Forks stay: they have copies of all they need.
    """
    wanted = [run.pk for run in runs]
    with transaction.atomic():
        found = _lock_runs(
            pk__in=wanted, status__in=FINISHED_STATUSES, parent_step=None
        )
        family = level = found
        while level:
            level = _lock_runs(parent_step__run__in=level)
            family = family + level
        cards = RunSearchRow.objects.filter(run__in=family).select_related("run")
        update_daily_stats([], removed=list(cards))
        for run in found:
            Run.objects.filter(pk=run.pk).delete()
            write_entry("deleted", "run", f"run {run.pk}", number=run.pk, by=by)
    return len(found)


def _lock_runs(**which: object) -> list[Run]:
    """Return the runs, locked in the order that all writers use."""
    rows = Run.objects.select_for_update(of=("self",)).filter(**which)
    return list(rows.order_by("pk"))
