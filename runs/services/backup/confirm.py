"""Confirm a restore: decide what continues, and end the pause of the site."""

from datetime import datetime
from typing import Literal, NamedTuple

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from runs.models import Delivery, Run, Schedule, SiteRestore, Webhook
from runs.services.retention.jobs import stop_prune_jobs
from runs.services.runs.end import close_open_steps
from runs.services.schedules.fire import compute_next_fire
from runs.services.webhooks.deliver import build_ended_columns
from runs.store.database_clock import db_time_from_now
from runs.store.mail.notifications import drop_waiting_notifications
from runs.store.transitions import transition
from tools.audit.write import write_entry
from tools.text.translatable import translatable

RunChoice = Literal["stop", "continue"]
ScheduleChoice = Literal["disable", "continue"]
WebhookChoice = Literal["disable", "discard", "send"]

ACTIVE_STATUSES = (Run.Status.QUEUED, Run.Status.RUNNING, Run.Status.WAITING)
"""Statuses of runs that would continue without a person."""
AWAITING_STATUSES = (Run.Status.AWAITING_APPROVAL, Run.Status.AWAITING_DECISION)

ERROR_CODE = "restored"


class RestoreChoices(NamedTuple):
    """What becomes of the work that the backup contained."""

    runs: RunChoice = "stop"
    schedules: ScheduleChoice = "disable"
    webhooks: WebhookChoice = "disable"


class RestoredWork(NamedTuple):
    """What a confirmation decides about."""

    active_runs: int
    awaiting_runs: int
    """Runs that need a person anyway."""
    schedules: int
    webhooks: int
    deliveries: int
    """Deliveries that were not sent yet."""


class NoPausedRestore(Exception):
    """The site is not paused, or somebody else confirmed first."""


def count_restored_work() -> RestoredWork:
    return RestoredWork(
        active_runs=_find_active_runs().count(),
        awaiting_runs=_restored_runs().filter(status__in=AWAITING_STATUSES).count(),
        schedules=Schedule.objects.on().count(),
        webhooks=Webhook.objects.filter(is_on=True).count(),
        deliveries=Delivery.objects.filter(status=Delivery.Status.WAITING).count(),
    )


def confirm_restore(choices: RestoreChoices, *, by: User | None) -> RestoredWork:
    """Apply the choices and end the pause; return what they were applied to.

    All or nothing. Raises `NoPausedRestore`.
    """
    with transaction.atomic():
        # Taken first, so that a second confirmation waits and then finds nothing.
        taken = SiteRestore.objects.unconfirmed().update(
            confirmed_at=Now(), confirmed_by=by.get_username() if by else ""
        )
        if not taken:
            raise NoPausedRestore
        found = count_restored_work()
        _expire_leases()
        if choices.runs == "stop":
            _stop_runs()
        drop_waiting_notifications()
        if choices.webhooks != "send":
            _discard_deliveries()
        if choices.webhooks == "disable":
            Webhook.objects.update(is_on=False)
        _settle_schedules(disable=choices.schedules == "disable")
        if restored_at := _find_restore_time():
            stop_prune_jobs(before=restored_at, by=by)
        changes = {name: [None, value] for name, value in choices._asdict().items()}
        write_entry("confirmed", "restore", "restore", by=by, changes=changes)
    return found


def _restored_runs() -> QuerySet[Run]:
    """Return the runs of the backup: those created since belong to this site."""
    newest = _find_restore_time()
    return Run.objects.filter(created_at__lt=newest) if newest else Run.objects.none()


def _find_restore_time() -> datetime | None:
    newest: datetime | None = SiteRestore.objects.aggregate(at=Max("restored_at"))["at"]
    return newest


def _find_active_runs() -> QuerySet[Run]:
    return _restored_runs().filter(status__in=ACTIVE_STATUSES)


def _expire_leases() -> None:
    """Give up leases of workers of the original site."""
    Run.objects.filter(status=Run.Status.RUNNING).update(
        lease_until=db_time_from_now(-1)
    )


def _stop_runs() -> None:
    message = translatable(
        "The site was restored from a backup while this run was in progress. Calls "
        "made after the backup may be missing here. Check before you resume."
    )
    for run in list(_find_active_runs().order_by("pk")):  # parents before children
        if transition(
            run,
            to=Run.Status.FAILED,
            only_from=ACTIVE_STATUSES,
            error_code=ERROR_CODE,
            error_message=message,
        ):
            close_open_steps(run)


def _discard_deliveries() -> None:
    """End those of the backup, and those that stopping its runs has added."""
    Delivery.objects.filter(status=Delivery.Status.WAITING).update(
        **build_ended_columns(Delivery.Status.FAILED),
        error=_("Discarded: the site was restored from a backup."),
    )


def _settle_schedules(*, disable: bool) -> None:
    """Disable all, or skip the times between backup and confirmation."""
    if disable:
        Schedule.objects.on().update(next_at=None)
        return
    now = timezone.now()
    for schedule in Schedule.objects.on().filter(next_at__lte=now):
        schedule.next_at = compute_next_fire(schedule, now=now).next_at
        schedule.save(update_fields=["next_at"])
