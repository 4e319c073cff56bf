"""Share links of a run: create, open, revoke."""

import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from runs.models import Run, RunShare
from runs.services.accounts.tokens import hash_token
from runs.services.errors import CannotShare
from tools.audit.write import write_entry

MAX_LINKS = 50
MAX_HOURS = 24 * 365


def share_run(run: Run, *, by: User, hours: int) -> str:
    """Return the token of a new link to `run`; only its hash is stored.

    Raises `CannotShare` if the run has too many links or `hours` is out of range.
    """
    if not 0 < hours <= MAX_HOURS:
        raise CannotShare(_("Enter a lifetime from one hour to one year."))
    token = secrets.token_urlsafe(32)
    with transaction.atomic():
        RunShare.objects.filter(run=run, expires_at__lt=Now()).delete()
        if get_active_shares(run).count() >= MAX_LINKS:
            raise CannotShare(
                _("A run can have at most %(limit)s links. Revoke one first.")
                % {"limit": MAX_LINKS}
            )
        RunShare.objects.create(
            run=run,
            by=by,
            digest=hash_token(token),
            expires_at=Now() + timedelta(hours=hours),
        )
        write_entry(
            "shared", "run", f"run {run.pk}, for {hours} h", number=run.pk, by=by
        )
    return token


def get_active_shares(run: Run) -> QuerySet[RunShare]:
    """Return the valid links of the run, newest first."""
    return RunShare.objects.filter(
        run=run, revoked_at=None, expires_at__gt=Now()
    ).select_related("by")


def open_share(token: str) -> Run | None:
    """Return the run of a link; None if it is unknown, expired or revoked.

    A link stops working when its creator may no longer see the run.
    """
    share = (
        RunShare.objects.filter(
            digest=hash_token(token),
            revoked_at=None,
            expires_at__gt=Now(),
            by__is_active=True,
        )
        .select_related("by", "run__agent__owner", "run__spec", "run__version")
        .first()
    )
    if share is None or not may_view_run(share.by, share.run):
        return None
    RunShare.objects.filter(pk=share.pk).update(
        open_count=F("open_count") + 1, seen_at=Now()
    )
    return share.run


def may_view_run(user: User, run: Run) -> bool:
    return Run.objects.visible_to(user).filter(pk=run.pk).exists()


def revoke_share(share: RunShare, *, by: User) -> bool:
    """Revoke a link; False if it was revoked before."""
    with transaction.atomic():
        rows = RunShare.objects.filter(pk=share.pk, revoked_at=None)
        revoked = rows.update(revoked_at=Now())
        if revoked:
            message = f"a link to run {share.run_id}"
            write_entry("revoked", "run", message, number=share.run_id, by=by)
        return bool(revoked)


def build_share_url(token: str) -> str:
    return f"{settings.PUBLIC_URL}/shared/{token}/"
