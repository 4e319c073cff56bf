"""Fire due schedules: sweepers do it, and the database decides races.

One transaction moves a schedule to its next time, if it still has the time that was
read, and inserts the run. So each time has one run, even if workers die or race.
"""

import logging
import time
from datetime import datetime
from typing import Any, NamedTuple

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F
from django.db.models.functions import Now

from runs.models import Run, Schedule
from runs.services.errors import (
    NotPublished,
    OwnerDisabled,
    PreviousRunActive,
    RunsError,
)
from runs.services.providers.run_provider import get_usable_provider
from runs.services.runs.start import (
    freeze_newest_version,
    require_agent_access,
    start_run,
)
from runs.services.schedules.cron import (
    count_due_times,
    find_next_due_time,
    get_time_zone,
)
from runs.store.mail.notifications import notify_of_schedule
from tools.accounts.person_name import get_person_name
from tools.text.translatable import translatable

logger = logging.getLogger(__name__)

BATCH_SIZE = 500
MAX_SWEEP_SECONDS = 2.0
"""Maximum time one sweep spends on schedules."""

START_FAILED = translatable(
    "The run could not be started. See the server log. The schedule stays active."
)
NO_NEXT_TIME = translatable("The schedule has no further time and is paused.")


class NextFire(NamedTuple):
    """The next state of a schedule whose time has come."""

    next_at: datetime | None
    missed: int
    """Number of other times that have passed already."""


def fire_due_schedules() -> int:
    """Fire the due schedules, the oldest first; return how many.

    Times missed during an outage are caught up by one run.
    """
    ends = time.monotonic() + MAX_SWEEP_SECONDS
    due = Schedule.objects.filter(next_at__lte=Now()).order_by("next_at")
    done = 0
    for pk in list(due.values_list("pk", flat=True)[:BATCH_SIZE]):
        if time.monotonic() > ends:
            break
        rows = due.filter(pk=pk).select_related("agent__owner", "owner")
        schedule: Any = rows.annotate(now=Now()).first()
        done += schedule is not None and fire_schedule(schedule, now=schedule.now)
    return done


def fire_schedule(schedule: Schedule, *, now: datetime) -> bool:
    """Start the run of the due time; False if another sweep was first.

    An error is stored on the schedule; its next time is tried as usual.
    """
    coming = compute_next_fire(schedule, now=now)
    with transaction.atomic():
        rows = Schedule.objects.filter(
            pk=schedule.pk, next_at=schedule.next_at, updated_at=schedule.updated_at
        )
        if not rows.update(next_at=coming.next_at, last_at=schedule.next_at):
            return False
        mine = Schedule.objects.filter(pk=schedule.pk)
        if schedule.overlap == Schedule.Overlap.SKIP and find_unfinished_run_id(
            schedule
        ):
            mine.update(skipped=F("skipped") + 1 + coming.missed)
            return True
        run, problem = _try_start(schedule)
        if coming.next_at is None:
            problem = problem or NO_NEXT_TIME
        mine.update(
            skipped=0,
            missed=coming.missed,
            problem=problem,
            problem_at=now if problem else None,
            **({"last_run": run} if run else {}),
        )
        if problem:
            notify_of_schedule(schedule, at=now)
    return True


def _try_start(schedule: Schedule) -> tuple[Run | None, str]:
    """Return the new run, or the error; an internal error does not end the sweep."""
    try:
        with transaction.atomic():
            return start_scheduled_run(schedule), ""
    except RunsError as refused:
        return None, str(refused)
    except (OperationalError, InterfaceError):
        raise  # database not available: nothing has changed, it stays due
    except Exception:  # one schedule must not stop the others
        logger.exception("schedule %s could not start a run", schedule.pk)
        return None, START_FAILED


def start_scheduled_run(schedule: Schedule) -> Run:
    """Return a new run of the published version, with the owner's permissions.

    Raises `RunsError` if that is refused; nothing is stored then.
    """
    agent, owner = schedule.agent, schedule.owner
    if not owner.is_active:
        raise OwnerDisabled(get_person_name(owner))
    require_agent_access(agent, by=owner)
    if not agent.versions.exists():
        raise NotPublished(agent.name)
    frozen = freeze_newest_version(agent)
    get_usable_provider(frozen.spec, owner=agent.owner)
    return start_run(
        agent,
        by=owner,
        inputs=schedule.inputs,
        source=Run.Source.SCHEDULE,
        schedule=schedule,
        frozen=frozen,
    )


def run_schedule_now(schedule: Schedule) -> Run:
    """Start a run now; the next time of the schedule stays as it is.

    Raises `PreviousRunActive` if the schedule skips overlapping runs and one has
    not ended; `Schedule.DoesNotExist` if it was deleted meanwhile; else as
    `start_scheduled_run`. A second click waits for the first and finds its run.
    """
    with transaction.atomic():
        locked = Schedule.objects.select_for_update(of=("self",)).get(pk=schedule.pk)
        found = find_unfinished_run_id(locked)
        if found is not None and locked.overlap == Schedule.Overlap.SKIP:
            raise PreviousRunActive(found)
        run = start_scheduled_run(locked)
        Schedule.objects.filter(pk=locked.pk).update(
            last_run=run, problem="", problem_at=None
        )
        return run


def find_unfinished_run_id(schedule: Schedule) -> int | None:
    """Return the id of the newest unfinished run of the schedule.

    It tests for a missing end, which has an index.
    """
    rows = Run.objects.filter(schedule=schedule, ended_at=None)
    return max(rows.values_list("pk", flat=True), default=None)


def compute_next_fire(schedule: Schedule, *, now: datetime) -> NextFire:
    assert schedule.next_at is not None
    try:
        zone = get_time_zone(schedule.time_zone)
    except KeyError:
        return NextFire(None, 0)
    missed = count_due_times(schedule.cron, zone, after=schedule.next_at, until=now)
    return NextFire(find_next_due_time(schedule.cron, zone, after=now), missed)
