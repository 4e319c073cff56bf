"""Write e-mail notifications in the transaction of what they are about.

Each costs a query or two, and only on sites that send e-mail.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from runs.models import Decision, Notification, Preferences, Run, Schedule

MAX_PER_HOUR = 30
"""Messages of one kind to one person; what happens beyond that is not sent."""
MAX_AGE = timedelta(days=1)
"""Runs that ended earlier are not reported: they are indexed anew."""

Kind = Notification.Kind


def notify_of_decisions(run: Run, decisions: Iterable[Decision]) -> None:
    """Notify those who may answer and want to know."""
    if not settings.EMAIL_IS_ON:
        return
    for decision in decisions:
        who = Q(user=run.owner_id)
        if decision.approvers_id is not None:
            who = Q(user__groups=decision.approvers_id)
        people = _get_readers(emails_approvals=True).filter(who)
        if decision.second_person:
            people = people.exclude(user=run.owner_id)
        _add_notifications(
            people,
            kind=Kind.DECISION,
            key=f"decision:{decision.pk}",
            run=run,
            decision=decision,
        )


def notify_of_failed_runs(runs: Sequence[Run]) -> None:
    """Notify the owners of runs that have failed; of sub-agent and test runs nobody."""
    if not settings.EMAIL_IS_ON:
        return
    since = timezone.now() - MAX_AGE
    failed = [
        run
        for run in runs
        if run.status == Run.Status.FAILED
        and run.parent_step_id is None
        and not run.is_test
        and run.ended_at is not None
        and run.ended_at > since
    ]
    if not failed:
        return
    owners = {run.owner_id for run in failed}
    wanting = _get_readers(emails_failures=True).filter(user__in=owners)
    readers = set(wanting.values_list("user", flat=True))
    for run in failed:
        if run.owner_id in readers:
            _add_notifications(
                wanting.filter(user=run.owner_id),
                kind=Kind.RUN_FAILED,
                key=f"run:{run.pk}:{run.ended_at:%Y%m%d%H%M%S%f}",
                run=run,
            )


def notify_of_schedule(schedule: Schedule, *, at: datetime) -> None:
    """Notify the owner of a schedule that could not start its run."""
    if not settings.EMAIL_IS_ON:
        return
    _add_notifications(
        _get_readers(emails_schedules=True).filter(user=schedule.owner_id),
        kind=Kind.SCHEDULE,
        key=f"schedule:{schedule.pk}:{at:%Y%m%d%H%M%S%f}",
        schedule=schedule,
    )


def _get_readers(**wanted: bool) -> "QuerySet[Preferences]":
    rows = Preferences.objects.filter(user__is_active=True, **wanted)
    return rows.exclude(user__email="")


def _add_notifications(
    people: "QuerySet[Preferences]", *, kind: str, key: str, **about: Any
) -> None:
    now = timezone.now()
    keys = set(people.values_list("user", flat=True))
    recent = Notification.objects.filter(
        user__in=keys, kind=kind, created_at__gt=now - timedelta(hours=1)
    )
    counts: dict[int, int] = {}
    for user in recent.values_list("user", flat=True):
        counts[user] = counts.get(user, 0) + 1
    Notification.objects.bulk_create(
        (
            Notification(
                user_id=user,
                kind=kind,
                key=key,
                available_at=now,
                created_at=now,
                **about,
            )
            for user in sorted(keys)
            if counts.get(user, 0) < MAX_PER_HOUR
        ),
        ignore_conflicts=True,
    )


def count_recent_notifications(user: User, kind: str) -> int:
    """Return how many messages of a kind the user was meant to get within an hour."""
    since = timezone.now() - timedelta(hours=1)
    rows = Notification.objects.filter(user=user, kind=kind, created_at__gt=since)
    return rows.count()


def drop_waiting_notifications() -> int:
    """Send none of those that wait; return how many there were."""
    rows = Notification.objects.filter(status=Notification.Status.WAITING)
    return rows.update(
        status=Notification.Status.DROPPED, available_at=None, ended_at=F("created_at")
    )
