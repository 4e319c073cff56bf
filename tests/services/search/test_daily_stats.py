"""Counting ended runs for the charts."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from runs.models import DailyRunStats, Run
from runs.services.runs.delete import delete_runs
from runs.services.runs.resume import resume_run
from runs.services.search.index_runs import index_runs
from tests.make import make_agent, make_run, make_step, make_user

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
