"""Create, change, pause, resume and delete schedules."""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from runs.models import Agent, Schedule
from runs.services.errors import NeverDue, ScheduleConflict, ScheduleNameInUse
from runs.services.schedules.cron import find_next_due_time, get_time_zone
from tools.audit.write import write_entry

EDITABLE_FIELDS = ("name", "inputs", "cron", "time_zone", "overlap")
"""Columns that people edit; the sweeper writes the others."""


def create_schedule(schedule: Schedule) -> Schedule:
    """Return a new enabled schedule, or an existing equal one.

    So a form sent twice creates one. Raises `ScheduleNameInUse` and `NeverDue`.
    """
    schedule.next_at = _compute_next_time(schedule)
    try:
        with transaction.atomic():
            schedule.save()
    except IntegrityError:
        same = {
            name: getattr(schedule, name)
            for name in (*EDITABLE_FIELDS, "agent", "owner")
        }
        twin = Schedule.objects.filter(**same).first()
        if twin is None:
            raise ScheduleNameInUse(schedule.name) from None
        return twin
    return schedule


def update_schedule(schedule: Schedule, *, seen: str) -> None:
    """Save the edits; `seen` is the token of the edited state.

    Raises `ScheduleConflict` if it was changed since, `ScheduleNameInUse` and
    `NeverDue`.
    """
    try:
        with transaction.atomic():
            rows = Schedule.objects.select_for_update(of=("self",))
            stored = rows.get(pk=schedule.pk)
            if get_schedule_token(stored) != seen:
                raise ScheduleConflict
            times = (stored.cron, stored.time_zone)
            if stored.is_on and times != (schedule.cron, schedule.time_zone):
                schedule.next_at = _compute_next_time(schedule)
            else:
                schedule.next_at = stored.next_at
            schedule.problem, schedule.problem_at = "", None
            written = (
                *EDITABLE_FIELDS,
                "next_at",
                "problem",
                "problem_at",
                "updated_at",
            )
            schedule.save(update_fields=written)
    except IntegrityError:
        raise ScheduleNameInUse(schedule.name) from None


def pause_schedule(schedule: Schedule) -> bool:
    """Start no more runs; False if it was paused already."""
    return _set_next_time(schedule, next_at=None, action="paused")


def resume_schedule(schedule: Schedule) -> bool:
    """Start runs again from the next time; False if it is enabled already.

    Times during the pause are not caught up. Raises `NeverDue`.
    """
    return _set_next_time(
        schedule, next_at=_compute_next_time(schedule), action="resumed"
    )


def delete_schedule(schedule: Schedule) -> None:
    """Delete it; its runs stay. Waits for a run that is being started."""
    with transaction.atomic():
        rows = Schedule.objects.select_for_update(of=("self",)).filter(pk=schedule.pk)
        for locked in rows:
            locked.delete()


def get_schedule_token(schedule: Schedule) -> str:
    """Return a token for this state of a schedule; each change alters it."""
    return schedule.updated_at.isoformat()


def _set_next_time(
    schedule: Schedule, *, next_at: datetime | None, action: str
) -> bool:
    with transaction.atomic():
        rows = Schedule.objects.filter(pk=schedule.pk)
        rows = rows.filter(next_at__isnull=next_at is not None)
        if not rows.update(next_at=next_at, skipped=0, problem="", problem_at=None):
            return False
        write_entry(action, "schedule", schedule)
        return True


def _compute_next_time(schedule: Schedule) -> datetime:
    """Return the first time after now, by the database's clock."""
    rows = Agent.objects.filter(pk=schedule.agent_id).annotate(now=Now())
    now: datetime = rows.values_list("now", flat=True).get()
    at = find_next_due_time(schedule.cron, get_time_zone(schedule.time_zone), after=now)
    if at is None:
        raise NeverDue
    return at
