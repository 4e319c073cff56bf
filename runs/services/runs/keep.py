"""Keep runs forever, so that retention rules leave them out."""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction

from runs.models import Run
from runs.services.runs.delete_rows import lock_runs, lock_trees
from runs.store.transitions import get_ancestor_ids
from tools.audit.write import write_entry


def keep_runs(runs: Iterable[Run], *, keep: bool, by: User) -> int:
    """Keep runs forever, or no longer; return how many were changed.

    A run is kept, and released, with its parents and all its sub-agent runs.
    """
    changed = 0
    with transaction.atomic():
        roots = {(get_ancestor_ids(run) or [run.pk])[-1] for run in runs}
        for tree in lock_trees(lock_runs(pk__in=roots)):
            keys = [run.pk for run in tree if run.keep_forever != keep]
            if not Run.objects.filter(pk__in=keys).update(keep_forever=keep):
                continue
            changed += 1
            root = tree[0]
            write_entry(
                "changed",
                "run",
                f"run {root.pk}",
                number=root.pk,
                by=by,
                changes={"keep_forever": [not keep, keep]},
            )
    return changed
