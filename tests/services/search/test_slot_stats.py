"""Counting ended runs by the quarter of an hour of their start."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from importlib import import_module

import pytest
from django.db import connection
from django.db.models import Sum
from django.utils import timezone

from runs.models import (
    Run,
    RunDurationSlot,
    RunStatsDay,
    RunStatsSlot,
    RunSumsSlot,
)
from runs.models.run_slots import EVERYONE
from runs.services.runs.delete import delete_runs
from runs.services.runs.resume import resume_run
from runs.services.search.index_runs import index_runs
from runs.services.search.slot_stats import forget_slots_of, get_run_slot
from tests.make import make_agent, make_run, make_spec, make_step, make_user

pytestmark = pytest.mark.django_db
STATUSES = ("succeeded", "limit_reached", "failed", "canceled")


def stored():
    """Return what both tables say, without rows that have come down to nothing."""
    columns = ("owner_number", "slot", "agent_number", "model", "is_child", "is_test")
    stats = {
        tuple(row[:6]): tuple(row[6:])
        for row in RunStatsSlot.objects.values_list(*columns, *STATUSES, "tokens")
        if any(row[6:])
    }
    rows = RunDurationSlot.objects.exclude(runs=0)
    columns = ("owner_number", "slot", "bucket", "is_test", "runs")
    return stats, set(rows.values_list(*columns)), *stored_sums()


def stored_sums():
    """Return the rows by slot alone, and by day."""
    columns = ("owner_number", "is_child", "is_test", *STATUSES, "tokens", "cost")
    return tuple(
        {row for row in model.objects.values_list(*keys, *columns) if any(row[-6:])}
        for model, keys in (
            (RunSumsSlot, ("slot",)),
            (RunStatsDay, ("day", "agent_number", "model")),
        )
    )


def start_at(run, at):
    Run.objects.filter(pk=run.pk).update(created_at=at)


def make_some_runs(dice, count=30):
    agents, people = [make_agent(), make_agent()], [make_user(), make_user()]
    now = timezone.now()
    for _ in range(count):
        run = make_run(
            dice.choice(people),
            agent=dice.choice(agents),
            spec=make_spec(),
            status=dice.choice(["succeeded", "failed", "canceled"]),
            is_test=dice.random() < 0.3,
            input_tokens=dice.randrange(9),
            started_at=now - timedelta(seconds=dice.randrange(1, 999)),
            ended_at=now,
        )
        start_at(run, now - timedelta(minutes=dice.randrange(600)))
    return agents, people


def test_a_run_counts_for_its_owner_and_for_everyone_in_the_quarter_of_its_start():
    run = make_run(status="failed", input_tokens=5)
    start_at(run, datetime(2026, 11, 20, 18, 44, 59, tzinfo=UTC))
    index_runs()

    rows = RunStatsSlot.objects.order_by("owner_number")
    assert [row.owner_number for row in rows] == [EVERYONE, run.owner_id]
    assert {row.slot for row in rows} == {datetime(2026, 11, 20, 18, 30, tzinfo=UTC)}
    assert [(row.failed, row.succeeded, row.tokens) for row in rows] == [(1, 0, 5)] * 2


def test_runs_that_other_runs_started_count_apart_and_not_as_durations():
    parent = make_run(status="succeeded")
    make_run(
        parent.owner,
        parent_step=make_step(parent),
        source="parent",
        status="succeeded",
    )
    index_runs()

    of_everyone = RunStatsSlot.objects.filter(owner_number=EVERYONE)
    assert Counter(of_everyone.values_list("is_child", flat=True)) == {
        True: 1,
        False: 1,
    }
    durations = RunDurationSlot.objects.filter(owner_number=EVERYONE)
    assert durations.aggregate(n=Sum("runs")) == {"n": 1}


@pytest.mark.parametrize("seed", range(3))
def test_the_counts_equal_a_recount_after_resumes_and_deletions(seed):
    dice = random.Random(seed)
    make_some_runs(dice)
    index_runs()
    failed = list(Run.objects.filter(status="failed"))
    for run in failed[:4]:
        resume_run(run, by=None)
        Run.objects.filter(pk=run.pk).update(
            status="succeeded", ended_at=timezone.now(), input_tokens=70
        )
    for run in failed[4:6]:
        delete_runs([run], by=run.owner)
    index_runs()
    kept = stored()

    RunStatsSlot.objects.all().delete()
    RunDurationSlot.objects.all().delete()
    import_module("runs.migrations.0040_run_slots").fill_slots(connection)
    import_module("runs.migrations.0071_test_slots").split_slots(connection)
    for model in (RunSumsSlot, RunStatsDay):
        model.objects.all().delete()
    import_module("runs.migrations.0074_run_sums").fill_sums(connection)
    assert kept == stored()
    everyone = RunStatsSlot.objects.filter(owner_number=EVERYONE)
    for status in STATUSES:
        total = everyone.aggregate(n=Sum(status))["n"]
        assert total == Run.objects.filter(status=status).count()


def test_an_erased_person_is_counted_for_everyone_only():
    run = make_run(status="succeeded")
    index_runs()
    forget_slots_of(run.owner_id)

    numbers = RunStatsSlot.objects.values_list("owner_number", flat=True)
    assert list(numbers) == [EVERYONE]
    assert [one.owner_number for one in RunSumsSlot.objects.all()] == [EVERYONE]
    assert [one.owner_number for one in RunStatsDay.objects.all()] == [EVERYONE]
    assert RunDurationSlot.objects.count() == 1


@pytest.mark.parametrize(
    ("minute", "slot"), [(0, 0), (14, 0), (15, 15), (44, 30), (59, 45)]
)
def test_a_slot_is_a_quarter_of_an_hour(minute, slot):
    at = datetime(2026, 11, 20, 18, minute, 59, 9, tzinfo=UTC)
    assert get_run_slot(at) == datetime(2026, 11, 20, 18, slot, tzinfo=UTC)
