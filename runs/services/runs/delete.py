"""Delete ended runs that a person selected."""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction

from runs.models import Run, RunSearchRow
from runs.models.runs import FINISHED_STATUSES
from runs.services.runs.delete_rows import delete_run_rows, lock_runs, lock_trees
from runs.services.search.daily_stats import update_daily_stats
from tools.audit.write import write_entry


def delete_runs(runs: Iterable[Run], *, by: User) -> int:
    """Delete the ended runs and return how many; unfinished ones stay.

    Child runs are deleted with their parent, never alone: the parent's record would
    lack the origin of an answer. Forks stay: they have copies of all they need.
    """
    wanted = [run.pk for run in runs]
    with transaction.atomic():
        found = lock_runs(pk__in=wanted, status__in=FINISHED_STATUSES, parent_step=None)
        family = [run.pk for tree in lock_trees(found) for run in tree]
        cards = RunSearchRow.objects.filter(run__in=family).select_related("run")
        update_daily_stats([], removed=list(cards))
        delete_run_rows(family)
        for run in found:
            write_entry("deleted", "run", f"run {run.pk}", number=run.pk, by=by)
    return len(found)
