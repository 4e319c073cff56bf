"""Starting what is due: the sweepers do it, with the database as the only truth.

One transaction moves a schedule to its next time, if it still stands at the time that
was read, and inserts the run. So each time has one run, whoever dies or comes second.
"""

import logging
import time
from datetime import datetime
from typing import Any, NamedTuple

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F
from django.db.models.functions import Now

from runs.models import Run, Schedule
from runs.services.cron import count_times, next_time, zone_of
from runs.services.errors import (
    NotPublished,
    OwnerAway,
    RunsError,
    StillAtWork,
)
from runs.services.provider_of_run import usable_provider
from runs.services.start_run import freeze_newest, refuse_stranger, start_run

logger = logging.getLogger(__name__)

AT_ONCE = 500
SECONDS = 2.0
"""How long one sweep starts schedules; it has more to do, and comes again soon."""

BROKEN = (
    "The run could not be started; the server's log says why. The next time is tried "
    "as usual."
)
NO_TIMES = "No next time could be found for it, so it is paused."


class Coming(NamedTuple):
    """What a schedule is moved to when a time has come."""

    next_at: datetime | None
    missed: int
    """Further times that have passed already."""


def start_due() -> int:
    """Deal with the times that have come, the longest due first; return how many.

    Times missed while nothing ran are made up for by one run.
    """
    ends = time.monotonic() + SECONDS
    due = Schedule.objects.filter(next_at__lte=Now()).order_by("next_at")
    done = 0
    for pk in list(due.values_list("pk", flat=True)[:AT_ONCE]):
        if time.monotonic() > ends:
            break
        rows = due.filter(pk=pk).select_related("agent__owner", "owner")
        schedule: Any = rows.annotate(now=Now()).first()
        done += schedule is not None and start_on_time(schedule, now=schedule.now)
    return done


def start_on_time(schedule: Schedule, *, now: datetime) -> bool:
    """Start the run of the time that has come; False where another was first.

    What refuses the start is written on the schedule; its next time is tried as usual.
    """
    coming = coming_of(schedule, now=now)
    with transaction.atomic():
        rows = Schedule.objects.filter(
            pk=schedule.pk, next_at=schedule.next_at, updated_at=schedule.updated_at
        )
        if not rows.update(next_at=coming.next_at, last_at=schedule.next_at):
            return False
        mine = Schedule.objects.filter(pk=schedule.pk)
        if schedule.overlap == Schedule.Overlap.SKIP and at_work(schedule):
            mine.update(skipped=F("skipped") + 1 + coming.missed)
            return True
        run, problem = _try(schedule)
        if coming.next_at is None:
            problem = problem or NO_TIMES
        mine.update(
            skipped=0,
            missed=coming.missed,
            problem=problem,
            problem_at=now if problem else None,
            **({"last_run": run} if run else {}),
        )
    return True


def _try(schedule: Schedule) -> tuple[Run | None, str]:
    """Return the new run, or why there is none; a flaw of ours stops no sweep."""
    try:
        with transaction.atomic():
            return start_scheduled(schedule), ""
    except RunsError as refused:
        return None, str(refused)
    except (OperationalError, InterfaceError):
        raise  # the database is away: nothing has happened, it stays due
    except Exception:  # at a border: one schedule must not stop the others
        logger.exception("schedule %s could not start a run", schedule.pk)
        return None, BROKEN


def start_scheduled(schedule: Schedule) -> Run:
    """Return a new run of the published version, with the rights of the owner.

    Raises `RunsError` where that is refused; nothing is stored then.
    """
    agent, owner = schedule.agent, schedule.owner
    if not owner.is_active:
        raise OwnerAway(owner.get_full_name() or owner.get_username())
    refuse_stranger(agent, by=owner)
    if not agent.versions.exists():
        raise NotPublished(agent.name)
    frozen = freeze_newest(agent)
    usable_provider(frozen.spec, owner=agent.owner)
    return start_run(
        agent,
        by=owner,
        inputs=schedule.inputs,
        source=Run.Source.SCHEDULE,
        schedule=schedule,
        frozen=frozen,
    )


def run_now(schedule: Schedule) -> Run:
    """Return a run as its next time would start it; that time stays as it is.

    Raises `StillAtWork` where the schedule starts none beside another; else as
    `start_scheduled`; `Schedule.DoesNotExist` where it was deleted meanwhile. A second
    click waits for the first, and finds its run.
    """
    with transaction.atomic():
        locked = Schedule.objects.select_for_update(of=("self",)).get(pk=schedule.pk)
        found = at_work(locked)
        if found is not None and locked.overlap == Schedule.Overlap.SKIP:
            raise StillAtWork(found)
        run = start_scheduled(locked)
        Schedule.objects.filter(pk=locked.pk).update(
            last_run=run, problem="", problem_at=None
        )
        return run


def at_work(schedule: Schedule) -> int | None:
    """Return the number of the newest run of the schedule that is not over.

    No end says that as its status does, and an index knows those without an end.
    """
    rows = Run.objects.filter(schedule=schedule, ended_at=None)
    return max(rows.values_list("pk", flat=True), default=None)


def coming_of(schedule: Schedule, *, now: datetime) -> Coming:
    """Return what follows the time that has come, seen from `now`."""
    assert schedule.next_at is not None
    try:
        zone = zone_of(schedule.time_zone)
    except KeyError:
        return Coming(None, 0)
    missed = count_times(schedule.cron, zone, after=schedule.next_at, until=now)
    return Coming(next_time(schedule.cron, zone, after=now), missed)
