"""Writing schedules as people ask for it: made, changed, paused, going on, deleted."""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from runs.models import Agent, Schedule
from runs.services.cron import next_time, zone_of
from runs.services.errors import NameTaken, NeverDue, ScheduleMoved
from tools.audit.write import write_entry

TYPED = ("name", "inputs", "cron", "time_zone", "overlap")
"""What a person writes; everything else is the sweeper's."""


def make_schedule(schedule: Schedule) -> Schedule:
    """Store a new schedule that is on; return it, or its twin that is there already.

    A form that is sent twice makes one. Raises `NameTaken` where another schedule of
    the owner has the name, and `NeverDue`.
    """
    schedule.next_at = _next(schedule)
    try:
        with transaction.atomic():
            schedule.save()
    except IntegrityError:
        same = {name: getattr(schedule, name) for name in (*TYPED, "agent", "owner")}
        twin = Schedule.objects.filter(**same).first()
        if twin is None:
            raise NameTaken(schedule.name) from None
        return twin
    return schedule


def change_schedule(schedule: Schedule, *, seen: str) -> None:
    """Store what was typed; `seen` is the token of the state that was edited.

    Raises `ScheduleMoved` where somebody changed it since, `NameTaken` and `NeverDue`.
    """
    try:
        with transaction.atomic():
            rows = Schedule.objects.select_for_update(of=("self",))
            stored = rows.get(pk=schedule.pk)
            if token_of(stored) != seen:
                raise ScheduleMoved
            times = (stored.cron, stored.time_zone)
            if stored.is_on and times != (schedule.cron, schedule.time_zone):
                schedule.next_at = _next(schedule)
            else:
                schedule.next_at = stored.next_at
            schedule.problem, schedule.problem_at = "", None
            written = (*TYPED, "next_at", "problem", "problem_at", "updated_at")
            schedule.save(update_fields=written)
    except IntegrityError:
        raise NameTaken(schedule.name) from None


def pause_schedule(schedule: Schedule) -> bool:
    """Start nothing any more; False where it was paused already."""
    return _switch(schedule, next_at=None, action="paused")


def resume_schedule(schedule: Schedule) -> bool:
    """Start runs again from its next time on; False where it is on already.

    What was due meanwhile is not made up for. Raises `NeverDue`.
    """
    return _switch(schedule, next_at=_next(schedule), action="resumed")


def delete_schedule(schedule: Schedule) -> None:
    """Delete it; its runs stay. One that starts a run right now does so first."""
    with transaction.atomic():
        rows = Schedule.objects.select_for_update(of=("self",)).filter(pk=schedule.pk)
        for locked in rows:
            locked.delete()


def token_of(schedule: Schedule) -> str:
    """Return what names this state of a schedule; each change makes another."""
    return schedule.updated_at.isoformat()


def _switch(schedule: Schedule, *, next_at: datetime | None, action: str) -> bool:
    with transaction.atomic():
        rows = Schedule.objects.filter(pk=schedule.pk)
        rows = rows.filter(next_at__isnull=next_at is not None)
        if not rows.update(next_at=next_at, skipped=0, problem="", problem_at=None):
            return False
        write_entry(action, "schedule", schedule)
        return True


def _next(schedule: Schedule) -> datetime:
    """Return the first time after now, by the database's clock."""
    rows = Agent.objects.filter(pk=schedule.agent_id).annotate(now=Now())
    now: datetime = rows.values_list("now", flat=True).get()
    at = next_time(schedule.cron, zone_of(schedule.time_zone), after=now)
    if at is None:
        raise NeverDue
    return at
