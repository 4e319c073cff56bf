"""Schedules as people make and change them."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import Run, Schedule
from runs.services.errors import NeverDue, ScheduleConflict, ScheduleNameInUse
from runs.services.schedules.save import (
    create_schedule,
    delete_schedule,
    get_schedule_token,
    pause_schedule,
    resume_schedule,
    update_schedule,
)
from tests import make
from tests.support.threads import at_once
from tools.audit.actor import act_as
from tools.audit.entry import AuditEntry

pytestmark = pytest.mark.django_db


def new_schedule(**fields: object) -> Schedule:
    """Return a schedule that is not stored."""
    agent = fields.pop("agent", None) or make.make_agent(make.make_user("ann"))
    defaults = {"name": "Morning news", "inputs": {"input": "News?"}}
    defaults |= {"cron": "0 9 * * *", "owner": agent.owner, "agent": agent}
    return Schedule(**{**defaults, **fields})


def again(schedule: Schedule) -> Schedule:
    return Schedule.objects.get(pk=schedule.pk)


def actions() -> list[str]:
    rows = AuditEntry.objects.filter(noun="schedule").order_by("pk")
    return list(rows.values_list("action", flat=True))


def test_a_new_schedule_is_on():
    made = create_schedule(new_schedule())

    assert again(made).next_at is not None
    assert timezone.now() < again(made).next_at < timezone.now() + timedelta(days=1)


def test_a_form_sent_twice_makes_one_schedule():
    first = create_schedule(new_schedule())
    second = create_schedule(new_schedule(agent=first.agent))

    assert second == first
    assert Schedule.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_form_sent_twice_at_once_makes_one_schedule():
    agent = make.make_agent(make.make_user("ann"))

    def send() -> None:
        create_schedule(new_schedule(agent=agent))

    at_once(send, send)

    assert Schedule.objects.count() == 1


def test_another_schedule_of_the_same_name_is_refused():
    first = create_schedule(new_schedule())

    with pytest.raises(ScheduleNameInUse, match='"Morning news"'):
        create_schedule(new_schedule(agent=first.agent, cron="0 10 * * *"))


def test_another_person_may_use_the_name():
    first = create_schedule(new_schedule())
    create_schedule(new_schedule(agent=first.agent, owner=make.make_user("bob")))

    assert Schedule.objects.count() == 2


def test_other_times_give_another_next_time():
    schedule = make.make_schedule(cron="0 9 * * *")
    schedule.cron = "* * * * *"
    update_schedule(schedule, seen=get_schedule_token(again(schedule)))

    assert again(schedule).next_at <= timezone.now() + timedelta(minutes=1)


def test_another_name_leaves_the_next_time():
    schedule = make.make_schedule(problem="Old.", problem_at=timezone.now())
    due = schedule.next_at
    schedule.name = "Evening news"
    update_schedule(schedule, seen=get_schedule_token(again(schedule)))

    changed = again(schedule)
    assert (changed.name, changed.next_at, changed.problem) == ("Evening news", due, "")


def test_what_is_changed_while_paused_stays_paused():
    schedule = make.make_schedule(next_at=None)
    schedule.cron = "* * * * *"
    update_schedule(schedule, seen=get_schedule_token(again(schedule)))

    assert not again(schedule).is_on


def test_a_pause_in_another_tab_outlives_a_change():
    schedule = make.make_schedule()
    open_form = again(schedule)
    pause_schedule(schedule)
    open_form.cron = "* * * * *"
    update_schedule(open_form, seen=get_schedule_token(schedule))

    assert not again(schedule).is_on


def test_what_the_sweeper_wrote_outlives_a_change():
    schedule = make.make_schedule()
    open_form = again(schedule)
    run = make.make_run(agent=schedule.agent, schedule=schedule)
    moved = timezone.now() + timedelta(hours=3)
    Schedule.objects.update(next_at=moved, last_run=run, missed=2)
    update_schedule(open_form, seen=get_schedule_token(schedule))

    assert again(schedule).next_at == moved
    assert (again(schedule).last_run, again(schedule).missed) == (run, 2)


def test_a_later_change_is_not_overwritten():
    schedule = make.make_schedule()
    seen, other = get_schedule_token(schedule), again(schedule)
    other.name = "By another tab"
    update_schedule(other, seen=seen)
    schedule.name = "By this tab"

    with pytest.raises(ScheduleConflict):
        update_schedule(schedule, seen=seen)
    assert again(schedule).name == "By another tab"


def test_a_changed_name_must_be_free():
    taken, schedule = make.make_schedule(), make.make_schedule()
    schedule.name, schedule.owner = taken.name, taken.owner
    Schedule.objects.filter(pk=schedule.pk).update(owner=taken.owner)

    with pytest.raises(ScheduleNameInUse):
        update_schedule(schedule, seen=get_schedule_token(schedule))


def test_pausing_and_going_on_say_whether_they_changed_anything():
    schedule = make.make_schedule()

    assert [pause_schedule(schedule), pause_schedule(schedule)] == [True, False]
    assert not again(schedule).is_on
    assert [resume_schedule(schedule), resume_schedule(schedule)] == [True, False]
    assert again(schedule).next_at < timezone.now() + timedelta(days=1)


def test_what_is_never_due_cannot_go_on():
    schedule = make.make_schedule(next_at=None, cron="0 0 30 2 *")

    with pytest.raises(NeverDue):
        resume_schedule(schedule)


def test_runs_stay_when_their_schedule_is_deleted():
    schedule = make.make_schedule()
    run = make.make_run(agent=schedule.agent, schedule=schedule, source="schedule")
    delete_schedule(schedule)
    delete_schedule(schedule)

    kept = Run.objects.get(pk=run.pk)
    assert (kept.schedule, kept.source) == (None, "schedule")


def test_a_schedule_stays_when_its_last_run_is_deleted():
    schedule = make.make_schedule()
    run = make.make_run(agent=schedule.agent, schedule=schedule, status="succeeded")
    Schedule.objects.update(last_run=run)
    run.delete()

    assert again(schedule).last_run is None


def test_the_audit_log_tells_what_people_did_and_not_what_the_clock_did():
    ann = make.make_user("ann")
    with act_as(ann):
        schedule = create_schedule(new_schedule())
        schedule.name = "News"
        update_schedule(schedule, seen=get_schedule_token(again(schedule)))
        pause_schedule(schedule)
        resume_schedule(schedule)
        delete_schedule(schedule)

    assert actions() == ["made", "changed", "paused", "resumed", "deleted"]
    changed = AuditEntry.objects.get(noun="schedule", action="changed")
    assert changed.changes == {"name": ["Morning news", "News"]}
    assert changed.by == "ann"
