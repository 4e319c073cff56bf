"""Links to one run: made, opened, taken back."""

import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from runs.models import Run, RunShare
from runs.services.api_token import digest_of
from runs.services.errors import CannotShare
from tools.audit.write import write_entry

MOST_LINKS = 50
LONGEST_HOURS = 24 * 365


def share_run(run: Run, *, by: User, hours: int) -> str:
    """Return the token of a new link to `run`; only its hash is stored.

    Raises `CannotShare` where the run has many links already, or `hours` is no time.
    """
    if not 0 < hours <= LONGEST_HOURS:
        raise CannotShare("A link lasts from one hour to one year.")
    token = secrets.token_urlsafe(32)
    with transaction.atomic():
        RunShare.objects.filter(run=run, expires_at__lt=Now()).delete()
        if live_shares(run).count() >= MOST_LINKS:
            raise CannotShare(f"A run has at most {MOST_LINKS} links. Revoke some.")
        RunShare.objects.create(
            run=run,
            by=by,
            digest=digest_of(token),
            expires_at=Now() + timedelta(hours=hours),
        )
        write_entry(
            "shared", "run", f"run {run.pk}, for {hours} h", number=run.pk, by=by
        )
    return token


def live_shares(run: Run) -> QuerySet[RunShare]:
    """Return the links that open the run now, the newest first."""
    return RunShare.objects.filter(
        run=run, revoked_at=None, expires_at__gt=Now()
    ).select_related("by")


def open_share(token: str) -> Run | None:
    """Return the run behind a link; None where it is unknown, over or revoked.

    A link opens nothing that who made it may not see any more.
    """
    share = (
        RunShare.objects.filter(
            digest=digest_of(token),
            revoked_at=None,
            expires_at__gt=Now(),
            by__is_active=True,
        )
        .select_related("by", "run__agent__owner", "run__spec", "run__version")
        .first()
    )
    if share is None or not may_see(share.by, share.run):
        return None
    RunShare.objects.filter(pk=share.pk).update(seen=F("seen") + 1, seen_at=Now())
    return share.run


def may_see(user: User, run: Run) -> bool:
    """Whether `user` may see the run now."""
    return Run.objects.visible_to(user).filter(pk=run.pk).exists()


def revoke_share(share: RunShare, *, by: User) -> bool:
    """End a link at once; False where it had ended already."""
    with transaction.atomic():
        rows = RunShare.objects.filter(pk=share.pk, revoked_at=None)
        revoked = rows.update(revoked_at=Now())
        if revoked:
            told = f"a link to run {share.run_id}"
            write_entry("revoked", "run", told, number=share.run_id, by=by)
        return bool(revoked)


def address_of_share(token: str) -> str:
    """Return the URL to give away."""
    return f"{settings.PUBLIC_URL}/shared/{token}/"
