"""Stopping a run: its worker ends it, or the web where no worker lives."""

from django.contrib.auth.models import User
from django.db import transaction

from runs.models import Run
from runs.services.end_run import request_end
from runs.services.move import lock_ancestors
from tools.audit.write import write_entry


def cancel_run(run: Run, *, by: User | None = None) -> bool:
    """Ask `run` and its children to stop; False where it is already over.

    A worker that has the run looks every second. Where none has it, the run is over
    when this returns.
    """
    with transaction.atomic():
        lock_ancestors(run)
        asked = request_end(run, by=by.pk if by else None)
        if asked and by is not None:
            write_entry("cancelled", "run", f"run {run.pk}", number=run.pk, by=by)
    if asked:
        run.refresh_from_db()
    return asked
