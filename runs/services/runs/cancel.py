"""Cancel a run: its worker ends it, or this call if no worker has it."""

from django.contrib.auth.models import User
from django.db import transaction

from runs.models import Run
from runs.services.runs.end import request_cancel
from runs.store.transitions import lock_ancestors
from tools.audit.write import write_entry


def cancel_run(run: Run, *, by: User | None = None) -> bool:
    """Cancel `run` and its children; False if it has already ended.

    A worker that has the run checks every second. Without one, the run has ended
    when this returns.
    """
    with transaction.atomic():
        lock_ancestors(run)
        asked = request_cancel(run, by=by.pk if by else None)
        if asked and by is not None:
            write_entry("canceled", "run", f"run {run.pk}", number=run.pk, by=by)
    if asked:
        run.refresh_from_db()
    return asked
