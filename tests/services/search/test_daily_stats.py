"""Counting ended runs for the charts."""

import random
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from runs.models import DailyRunDurations, DailyRunStats, Run
from runs.services.health.related_rows import daily_stats_match_the_runs
from runs.services.runs.delete import delete_runs
from runs.services.runs.resume import resume_run
from runs.services.search.index_runs import index_runs
from tests.make import make_agent, make_run, make_spec, make_step, make_user
from tests.services.retention.rows import age, prune, set_rules

pytestmark = pytest.mark.django_db


def counted():
    rows = DailyRunStats.objects.filter(runs__gt=0).order_by("status")
    return {row.status: (row.runs, row.tokens, row.cost) for row in rows}


def test_counts_by_day_agent_person_and_outcome():
    ann = make_user()
    agent = make_agent(ann)
    for _ in range(2):
        make_run(ann, agent=agent, status="succeeded", input_tokens=5, cost="0.1")
    long_ago = timezone.now() - timedelta(days=2)
    make_run(ann, agent=agent, status="succeeded", ended_at=long_ago)
    make_run(ann, status="succeeded")
    make_run(make_user(), agent=agent, status="succeeded")
    index_runs()

    assert sorted(DailyRunStats.objects.values_list("runs", flat=True)) == [1, 1, 1, 2]
    assert DailyRunStats.objects.get(runs=2).cost == Decimal("0.2")


def test_a_resumed_run_counts_once_as_what_it_is_now():
    run = make_run(status="failed", error_code="overloaded", input_tokens=7)
    index_runs()
    resume_run(run, by=run.owner)
    Run.objects.filter(pk=run.pk).update(
        status="succeeded", ended_at=timezone.now(), input_tokens=9
    )
    index_runs()

    assert counted() == {"succeeded": (1, 9, 0)}


def test_a_deleted_run_is_counted_no_more():
    run = make_run(status="succeeded", input_tokens=7)
    index_runs()
    delete_runs([run], by=run.owner)

    assert counted() == {}


def test_the_runs_that_a_deleted_run_asked_for_are_counted_no_more():
    parent = make_run(status="succeeded")
    for run in (parent, make_child(parent)):
        make_child(run)
    index_runs()
    delete_runs([parent], by=parent.owner)

    assert counted() == {}


def make_child(parent):
    return make_run(
        parent.owner,
        parent_step=make_step(parent),
        source="parent",
        status="succeeded",
    )


class CrashError(Exception):
    """Stands for a process that is killed."""


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.slow
def test_the_figures_equal_a_recount_after_crashes(seed):
    dice = random.Random(seed)
    agents = [make_agent(), make_agent()]
    set_rules(succeeded_runs=30, failed_runs=10)

    def end_some():
        for _ in range(3):
            fields = {"input_tokens": dice.randrange(9), "spec": make_spec()}
            run = make_run(agent=dice.choice(agents), status="failed", **fields)
            age(run, dice.randrange(60))
            started = run.ended_at - timedelta(seconds=dice.randrange(1, 999))
            Run.objects.filter(pk=run.pk).update(
                status=dice.choice(["failed", "succeeded"]), started_at=started
            )

    def resume_one():
        if run := Run.objects.filter(status="failed").order_by("?").first():
            resume_run(run, by=None)
            Run.objects.filter(pk=run.pk).update(
                status="succeeded", ended_at=timezone.now()
            )

    def delete_one():
        if run := Run.objects.filter(status="failed").first():
            delete_runs([run], by=run.owner)

    acts = [end_some, index_runs, resume_one, delete_one, prune]
    for _ in range(40):
        with suppress(CrashError), transaction.atomic():
            dice.choice(acts)()
            if dice.random() < 0.3:
                raise CrashError
    index_runs()
    prune()

    assert list(daily_stats_match_the_runs()) == []
    totals = DailyRunStats.objects.aggregate(runs=Sum("runs"), pruned=Sum("pruned"))
    assert totals["runs"] == totals["pruned"] + Run.objects.count()
    for day in set(DailyRunStats.objects.values_list("day", flat=True)):
        counts = DailyRunStats.objects.filter(day=day).aggregate(n=Sum("runs"))
        assert DailyRunDurations.objects.filter(day=day).aggregate(n=Sum("runs")) == (
            counts
        )
