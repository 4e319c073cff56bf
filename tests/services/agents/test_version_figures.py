"""What the runs of each version of an agent add up to."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from runs.services.agents.publish import publish_agent
from runs.services.agents.version_figures import load_version_figures
from tests.make import make_agent, make_run

pytestmark = pytest.mark.django_db


def test_runs_are_summed_by_version_and_the_newest_comes_first():
    agent = make_agent()
    ann = agent.owner
    first = publish_agent(agent, by=ann)
    agent.description = "Other."
    agent.save()
    second = publish_agent(agent, by=ann)
    begin = timezone.now() - timedelta(seconds=40)
    paid = {"cost": Decimal("0.02"), "started_at": begin}
    paid["ended_at"] = begin + timedelta(seconds=30)
    make_run(ann, agent=agent, version=first, status="succeeded", rating=1, **paid)
    make_run(ann, agent=agent, version=first, status="failed", rating=-1)
    make_run(ann, agent=agent, version=second, status="succeeded")

    newer, older = load_version_figures(agent)

    assert (newer.number, newer.runs, newer.succeeded) == (2, 1, 1)
    assert (older.number, older.runs, older.succeeded) == (1, 2, 1)
    assert older.mean_cost == Decimal("0.01")
    assert older.p95 == pytest.approx(28.5)
    assert (older.good, older.rated) == (1, 2)
    assert newer.rated == 0


def test_tests_canceled_and_unfinished_runs_do_not_count():
    agent = make_agent()
    ann = agent.owner
    make_run(ann, agent=agent, status="succeeded", is_test=True)
    make_run(ann, agent=agent, status="canceled")
    make_run(ann, agent=agent, status="running")
    assert load_version_figures(agent) == []

    make_run(ann, agent=agent, status="limit_reached")

    (draft,) = load_version_figures(agent)
    assert (draft.number, draft.runs, draft.succeeded) == (None, 1, 0)
