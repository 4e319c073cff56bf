"""In which queue, and with which priority, a run waits for a worker."""

import pytest
import redis
from django.conf import settings as site_settings

from runs.models import Run
from runs.services.runs.start import start_run
from runs.store.transitions import transition
from runs.wakeup import find_priority
from runs.worker.sweep import sweep
from tests.make import make_agent, make_run, make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def broker(redis_url):
    with redis.Redis.from_url(site_settings.REDIS_URL) as client:
        client.flushdb()
        yield client


def start(agent, **fields):
    inputs = {"input": "Go."}
    return start_run(agent, by=agent.owner, inputs=inputs, draft=True, **fields)


def test_the_first_runs_of_a_user_have_the_first_priority():
    assert [find_priority(ahead) for ahead in (0, 9, 10, 99, 100, 1000)] == [
        *(0, 0, 3, 3, 6, 9)
    ]


def test_further_runs_of_a_user_are_in_a_list_of_their_own(broker):
    agent = make_agent()
    for _ in range(12):
        start(agent)
    start(make_agent())

    assert (broker.llen("live"), broker.llen("live\x06\x163")) == (11, 2)


def test_bulk_runs_do_not_lower_the_priority_of_live_ones(broker):
    agent = make_agent()
    for _ in range(12):
        start(agent, queue=Run.Queue.BULK)
    start(agent)

    assert (broker.llen("bulk"), broker.llen("live")) == (10, 1)


def test_a_run_of_a_schedule_waits_in_the_queue_of_schedules(broker):
    run = start(make_agent(), source=Run.Source.SCHEDULE)

    assert (run.queue, broker.llen("schedules")) == ("schedules", 1)


def test_a_run_that_continues_stays_in_its_queue(broker):
    run = make_run(make_user(), status="waiting", queue="bulk")
    transition(run, to="queued", available_at=None)

    assert broker.llen("bulk") == 1


def test_a_sweep_counts_the_running_runs_of_a_user(broker):
    ann = make_user()
    for _ in range(10):
        make_run(ann, status="running")
    make_run(ann)

    assert sweep(free=5) == 1
    assert (broker.llen("live"), broker.llen("live\x06\x163")) == (0, 1)
