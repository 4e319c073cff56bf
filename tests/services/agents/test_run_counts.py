"""How many runs each agent has had."""

import pytest

from runs.models import Run
from runs.services.agents.run_counts import count_agent_runs
from runs.services.runs.resume import resume_run
from runs.services.search.index_runs import index_runs
from tests.make import make_agent, make_run, make_user

pytestmark = pytest.mark.django_db


def totals(agents, user):
    found = count_agent_runs([agent.pk for agent in agents], user)
    return {pk: one.total for pk, one in found.items()}


def test_ended_and_other_runs_count_and_test_runs_do_not():
    ann, boss = make_user(), make_user("boss", is_superuser=True)
    agent, other, unused = (make_agent(ann, visibility="everyone") for _ in range(3))
    for status in ("succeeded", "failed", "running"):
        make_run(ann, agent=agent, status=status)
    make_run(ann, agent=agent, status="succeeded", is_test=True)
    make_run(boss, agent=agent, status="succeeded")
    make_run(ann, agent=other, status="queued")
    index_runs()
    every = [agent, other, unused]

    assert totals(every, ann) == {agent.pk: 3, other.pk: 1}
    assert totals(every, boss) == {agent.pk: 4, other.pk: 1}
    assert totals([unused], boss) == {}


def test_the_last_start_is_that_of_the_newest_visible_run():
    ann, boss = make_user(), make_user("boss", is_superuser=True)
    agent = make_agent(ann, visibility="everyone")
    own = make_run(ann, agent=agent, status="succeeded")
    newer = make_run(boss, agent=agent, status="succeeded")
    index_runs()

    seen = [count_agent_runs([agent.pk], one)[agent.pk] for one in (ann, boss)]

    assert [one.last_start for one in seen] == [own.created_at, newer.created_at]


def test_a_resumed_run_counts_once():
    run = make_run(status="failed")
    index_runs()
    resume_run(run, by=None)

    assert totals([run.agent], run.owner) == {run.agent_id: 1}
    assert Run.objects.get().status == "queued"


def test_the_number_of_queries_does_not_grow(django_assert_num_queries):
    ann = make_user()
    agents = [make_agent(ann) for _ in range(4)]
    for agent in agents:
        make_run(ann, agent=agent, status="succeeded")
    index_runs()

    with django_assert_num_queries(3):
        assert len(totals(agents, ann)) == 4
