"""Schedules that are due: one run for each time, whatever happens."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from runs.models import Conversation, Run, Schedule
from runs.services.agents.manage import archive_definition
from runs.services.errors import NotPublished, OwnerDisabled, PreviousRunActive
from runs.services.schedules import fire as subject
from runs.services.schedules.fire import fire_due_schedules, run_schedule_now
from runs.services.spec.freeze import freeze_agent
from runs.store.specs import get_or_create_spec
from tests.make import (
    make_agent,
    make_prompt,
    make_run,
    make_schedule,
    make_user,
    make_version,
)
from tests.support.threads import at_once
from tools.ownership import Visibility

pytestmark = pytest.mark.django_db


def make_due(**fields: Any) -> Schedule:
    """Make a schedule whose time came a minute ago, and comes next in half a day."""
    now = timezone.now()
    next_hour = (now + timedelta(hours=12)).hour
    defaults = {"cron": f"0 {next_hour} * * *", "next_at": now - timedelta(minutes=1)}
    return make_schedule(**defaults | fields)


def again(schedule: Schedule) -> Schedule:
    return Schedule.objects.get(pk=schedule.pk)


def due_now(schedule: Schedule) -> None:
    """Let the time of a schedule come."""
    past = timezone.now() - timedelta(seconds=1)
    Schedule.objects.filter(pk=schedule.pk).update(next_at=past)


def test_what_is_due_is_run_and_moves_to_its_next_time():
    schedule = make_due(cron="0 9 * * *")

    assert fire_due_schedules() == 1

    run, moved = Run.objects.get(), again(schedule)
    assert (run.owner, run.agent) == (schedule.owner, schedule.agent)
    assert (run.source, run.schedule) == ("schedule", schedule)
    assert (run.inputs, run.status) == ({"input": "What is new?"}, "queued")
    assert run.version == schedule.agent.versions.get()
    assert (moved.last_run, moved.last_at) == (run, schedule.next_at)
    assert moved.next_at is not None
    assert timezone.now() < moved.next_at <= timezone.now() + timedelta(days=1)
    assert (moved.next_at.hour, moved.next_at.minute) == (9, 0)
    assert moved.updated_at == schedule.updated_at


def test_what_is_not_due_or_paused_stays():
    make_schedule()
    make_schedule(next_at=None)

    assert fire_due_schedules() == 0
    assert not Run.objects.exists()


def test_one_time_is_run_once():
    make_due()

    assert [fire_due_schedules(), fire_due_schedules()] == [1, 0]
    assert Run.objects.count() == 1


def test_a_sweep_that_read_the_same_time_comes_too_late():
    schedule = make_due()
    read = Schedule.objects.select_related("agent", "owner").get(pk=schedule.pk)
    fire_due_schedules()

    assert not subject.fire_schedule(read, now=timezone.now())
    assert Run.objects.count() == 1


def test_what_was_changed_since_it_was_read_is_left_to_the_next_sweep():
    schedule = make_due()
    read = again(schedule)
    schedule.save()

    assert not subject.fire_schedule(read, now=timezone.now())
    assert fire_due_schedules() == 1


@pytest.mark.django_db(transaction=True)
def test_sweeps_at_once_start_each_time_once():
    schedules = [make_due() for _ in range(12)]

    at_once(fire_due_schedules, fire_due_schedules, fire_due_schedules)

    started = Run.objects.values_list("schedule", flat=True)
    assert sorted(started) == sorted(one.pk for one in schedules)


@pytest.mark.django_db(transaction=True)
def test_a_sweep_that_dies_before_its_commit_leaves_the_time_due(
    monkeypatch: pytest.MonkeyPatch,
):
    schedule = make_due()

    class Killed(BaseException):
        """The process is gone between the move and the end."""

    def die(*_: object, **__: object) -> None:
        raise Killed

    monkeypatch.setattr(subject, "start_run", die)
    with pytest.raises(Killed):
        fire_due_schedules()
    monkeypatch.undo()

    assert again(schedule).next_at == schedule.next_at
    assert fire_due_schedules() == 1


def test_times_missed_while_nothing_ran_are_made_up_for_by_one_run():
    due = datetime(2026, 1, 5, 3, 0, tzinfo=UTC)
    schedule = make_schedule(cron="0 * * * *", next_at=due, overlap="start")

    subject.fire_schedule(again(schedule), now=due + timedelta(hours=5, seconds=2))
    assert Run.objects.count() == 1
    assert (again(schedule).last_at, again(schedule).missed) == (due, 5)
    assert again(schedule).next_at == due + timedelta(hours=6)

    subject.fire_schedule(again(schedule), now=due + timedelta(hours=6, seconds=2))
    assert Run.objects.count() == 2
    assert again(schedule).missed == 0


def test_a_time_is_left_out_while_an_earlier_run_is_not_over():
    schedule = make_due()
    make_run(agent=schedule.agent, schedule=schedule, status="awaiting_approval")

    assert fire_due_schedules() == 1
    assert Run.objects.count() == 1
    assert again(schedule).skipped == 1
    assert again(schedule).next_at > timezone.now()

    Run.objects.all().delete()
    due_now(schedule)
    fire_due_schedules()
    assert again(schedule).skipped == 0
    assert again(schedule).last_run == Run.objects.get()


def test_a_run_is_started_beside_another_where_that_is_meant():
    schedule = make_due(overlap="start")
    make_run(agent=schedule.agent, schedule=schedule, status="running")
    fire_due_schedules()

    assert Run.objects.filter(schedule=schedule).count() == 2


def test_runs_of_other_schedules_are_not_in_the_way():
    schedule = make_due()
    other = make_schedule(agent=schedule.agent)
    make_run(agent=schedule.agent, schedule=other, status="running")
    make_run(agent=schedule.agent, status="running")
    fire_due_schedules()

    assert Run.objects.filter(schedule=schedule).count() == 1


def agent_archived(schedule: Schedule) -> None:
    archive_definition(schedule.agent)


def provider_archived(schedule: Schedule) -> None:
    archive_definition(schedule.agent.provider)


def no_longer_shared(schedule: Schedule) -> None:
    Schedule.objects.filter(pk=schedule.pk).update(owner=make_user())


def owner_away(schedule: Schedule) -> None:
    User.objects.filter(pk=schedule.owner_id).update(is_active=False)


def not_published(schedule: Schedule) -> None:
    schedule.agent.versions.all().delete()


def other_inputs(schedule: Schedule) -> None:
    agent = schedule.agent
    agent.prompt = make_prompt(
        agent.owner, messages=[{"role": "user", "template": "{input} in {city}"}]
    )
    agent.save()
    make_version(agent, spec=get_or_create_spec(freeze_agent(agent)))


@pytest.mark.parametrize(
    ("happens", "message"),
    [
        (agent_archived, "The agent is archived"),
        (provider_archived, "is archived. Unarchive it"),
        (no_longer_shared, "You cannot use the agent"),
        (owner_away, "is disabled"),
        (not_published, "has no published version"),
        (other_inputs, 'The input "city" is missing'),
    ],
)
def test_why_a_start_is_refused_stands_on_the_schedule(happens: Any, message: str):
    schedule, other = make_due(), make_due()
    happens(schedule)

    assert fire_due_schedules() == 2

    refused = again(schedule)
    assert message in refused.problem
    assert refused.problem_at is not None
    assert refused.next_at is not None
    assert refused.next_at > timezone.now()
    assert list(Run.objects.values_list("schedule", flat=True)) == [other.pk]


def test_a_problem_is_over_when_a_run_could_be_started():
    schedule = make_due(problem="Old.", problem_at=timezone.now())
    fire_due_schedules()

    assert (again(schedule).problem, again(schedule).problem_at) == ("", None)


def test_a_flaw_of_ours_stops_neither_the_sweep_nor_the_schedule(
    caplog: pytest.LogCaptureFixture,
):
    broken, fine = make_due(inputs=["no object"]), make_due()

    assert fire_due_schedules() == 2
    assert "See the server log" in again(broken).problem
    assert again(broken).next_at > timezone.now()
    assert again(fine).last_run is not None
    assert "could not start a run" in caplog.text


def test_what_has_no_next_time_is_paused_and_says_so():
    schedule = make_due(time_zone="Mars/Olympus")
    fire_due_schedules()

    assert again(schedule).next_at is None
    assert "paused" in again(schedule).problem


def test_who_may_use_a_shared_agent_may_schedule_it():
    owner = make_user()
    agent = make_agent(owner, visibility=Visibility.EVERYONE)
    make_version(agent, spec=get_or_create_spec(freeze_agent(agent)))
    schedule = make_due(agent=agent, owner=make_user("ann"))
    fire_due_schedules()

    assert again(schedule).problem == ""
    assert Run.objects.get().owner.username == "ann"


def test_each_run_of_an_agent_that_remembers_is_a_conversation_of_its_own():
    agent = make_agent(memory=True)
    make_version(agent, spec=get_or_create_spec(freeze_agent(agent)))
    schedule = make_due(agent=agent, overlap="start")
    fire_due_schedules()
    due_now(schedule)
    fire_due_schedules()

    assert Conversation.objects.count() == 2


def test_nine_o_clock_is_meant_in_the_zone_of_the_schedule(
    monkeypatch: pytest.MonkeyPatch,
):
    at = datetime(2026, 3, 28, 8, 0, tzinfo=UTC)  # the day before the clocks change
    schedule = make_schedule(cron="0 9 * * *", time_zone="Europe/Berlin", next_at=at)

    assert subject.fire_schedule(again(schedule), now=at + timedelta(seconds=2))
    assert again(schedule).next_at == datetime(2026, 3, 29, 7, 0, tzinfo=UTC)


def test_run_now_leaves_the_next_time_as_it_is():
    schedule = make_schedule(problem="Old.", problem_at=timezone.now())

    run = run_schedule_now(schedule)

    assert (run.source, run.schedule) == ("schedule", schedule)
    assert again(schedule).next_at == schedule.next_at
    assert (again(schedule).last_run, again(schedule).problem) == (run, "")


def test_run_now_starts_none_beside_another_unless_that_is_meant():
    schedule = make_schedule()
    first = run_schedule_now(schedule)

    with pytest.raises(PreviousRunActive, match=f"Run {first.pk} "):
        run_schedule_now(schedule)
    Schedule.objects.update(overlap="start")
    assert run_schedule_now(schedule).pk != first.pk


@pytest.mark.django_db(transaction=True)
def test_two_clicks_at_once_start_one_run():
    schedule, refused = make_schedule(), []

    def click() -> None:
        try:
            run_schedule_now(schedule)
        except PreviousRunActive as why:
            refused.append(why)

    at_once(click, click)

    assert (Run.objects.count(), len(refused)) == (1, 1)


def test_run_now_starts_nothing_for_a_schedule_deleted_since_it_was_shown():
    schedule = make_schedule(make_user())
    Schedule.objects.filter(pk=schedule.pk).delete()

    with pytest.raises(Schedule.DoesNotExist):
        run_schedule_now(schedule)
    assert Run.objects.count() == 0


def test_run_now_refuses_what_its_time_would_refuse():
    away = make_schedule(owner=make_user("cleo", is_active=False))
    with pytest.raises(OwnerDisabled, match="cleo"):
        run_schedule_now(away)

    draft = make_schedule(agent=make_agent(name="Sketch"))
    with pytest.raises(NotPublished, match="Sketch"):
        run_schedule_now(draft)
    assert not Run.objects.exists()


def test_a_sweep_stops_in_time_and_leaves_the_rest_due(
    monkeypatch: pytest.MonkeyPatch,
):
    for _ in range(3):
        make_due()
    monkeypatch.setattr(subject, "MAX_SWEEP_SECONDS", -1.0)

    assert fire_due_schedules() == 0
    monkeypatch.undo()
    assert fire_due_schedules() == 3


def test_the_longest_due_comes_first(monkeypatch: pytest.MonkeyPatch):
    young, old = make_due(), make_due()
    Schedule.objects.filter(pk=old.pk).update(
        next_at=timezone.now() - timedelta(days=1)
    )
    monkeypatch.setattr(subject, "BATCH_SIZE", 1)
    fire_due_schedules()

    assert list(Run.objects.values_list("schedule", flat=True)) == [old.pk]
    assert again(young).last_at is None


def test_a_sweep_with_nothing_due_asks_once(
    django_assert_num_queries: Any,
):
    make_schedule()

    with django_assert_num_queries(1):
        fire_due_schedules()
