"""Taking back a yes that counted for a whole run."""

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now

from runs.models import Allowance
from runs.services.close_question import lock_run
from runs.services.move import announce
from tools.audit.write import write_entry


def revoke_allowance(allowance: Allowance, *, by: User) -> bool:
    """Ask again before each call from now on; False where it was taken back already."""
    with transaction.atomic():
        lock_run(allowance.run)
        rows = Allowance.objects.filter(pk=allowance.pk, revoked_at=None)
        revoked = rows.update(revoked_at=Now(), revoked_by=by)
        announce(allowance.run_id)
        if revoked:
            thing = f"every call of {allowance.tool} in run {allowance.run_id}"
            write_entry("took the yes back", "allowance", thing, by=by)
        return bool(revoked)
