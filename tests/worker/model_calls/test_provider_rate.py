"""Requests and tokens per minute of a provider, for all workers together."""

import itertools
import time

import pytest
import redis

from runs.models import Run
from runs.services.health.invariants import check_invariants
from runs.services.providers import token_bucket
from runs.services.providers.rate import buckets
from runs.services.providers.token_bucket import BucketUse, SharedBuckets
from runs.services.runs.limit_wait import get_limit_wait
from runs.ui.run_wait import describe_limit_wait
from runs.worker.sweep import sweep
from tests.fakes.model_server import model_server
from tests.make import make_provider, make_user
from tests.worker.run_parts import agent_on, executed, go_on

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def broker(redis_url):
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
        yield client


def take(count, *, per_minute=60, amount=1.0, found=None):
    use = BucketUse("rate:1:requests", per_minute, amount)
    found = found or SharedBuckets(lambda: 1)
    return [found.take([use])[0] for _ in range(count)]


def agent_of(server, **limits):
    owner = make_user()
    provider = make_provider(owner, name="Local", base_url=server.base_url, **limits)
    return agent_on(server, owner=owner, provider=provider)


def exhaust(agent, limit="requests", *, per_minute, amount):
    key = f"rate:{agent.provider_id}:{limit}"
    buckets.take([BucketUse(key, per_minute, amount)])


@pytest.mark.parametrize("per_minute", [1, 9, 10, 60, 1000])
def test_no_minute_sees_more_than_the_limit(per_minute):
    began, turns = time.monotonic(), list[float]()
    for _ in range(3 * per_minute):
        asked = time.monotonic()
        (wait,) = take(1, per_minute=per_minute)
        turns.append(asked - began + wait)

    assert turns[0] < 1
    # Turns that many apart are a minute apart; a second is for the time of one call.
    pairs = zip(turns, turns[per_minute:], strict=False)
    assert all(later - earlier > 59 for earlier, later in pairs)
    assert turns[-1] < 3.5 * 60 + (time.monotonic() - began)


def test_all_workers_take_from_the_same_bucket():
    one, other = SharedBuckets(lambda: 1), SharedBuckets(lambda: 1)

    assert take(1, per_minute=10, found=one) == [0]
    assert take(1, per_minute=10, found=other)[0] > 0.5


def test_what_is_given_back_can_be_taken_again():
    take(1, per_minute=1000, amount=1000)
    assert take(1, per_minute=1000, amount=10)[0] > 50

    take(1, per_minute=1000, amount=-960)
    assert take(1, per_minute=1000, amount=10) == [0]


def test_without_redis_each_worker_takes_its_share(monkeypatch, settings):
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    token_bucket._find_script.cache_clear()
    try:
        alone, of_three = SharedBuckets(lambda: 1), SharedBuckets(lambda: 3)
        waits = [take(12, per_minute=10, found=each)[-1] for each in (alone, of_three)]
    finally:
        token_bucket._find_script.cache_clear()

    assert waits[0] > 5
    assert waits[1] == pytest.approx(3 * waits[0], rel=0.1)


def test_a_run_waits_for_its_turn_without_a_thread():
    with model_server(script=["Fine."]) as server:
        agent = agent_of(server, requests_per_minute=60)
        exhaust(agent, per_minute=60, amount=60)
        run = executed(agent)

        assert (run.status, run.waiting_for) == ("waiting", "requests")
        assert run.attempts.count() == 0
        assert list(check_invariants()) == []
        text = describe_limit_wait(get_limit_wait(run))
        assert text == "Waiting for provider Local: 60 requests per minute"

        Run.objects.filter(pk=run.pk).update(available_at="2020-01-01T00:00Z")
        sweep(free=0)
        go_on(run)

    assert (run.status, run.output, run.waiting_for) == ("succeeded", "Fine.", "")
    assert run.waiting_provider is None


def test_a_run_waits_for_tokens():
    with model_server(script=["Fine."]) as server:
        agent = agent_of(server, tokens_per_minute=10_000, requests_per_minute=600)
        exhaust(agent, "tokens", per_minute=10_000, amount=10_000)
        run = executed(agent)

    assert run.waiting_for == "tokens"
    text = describe_limit_wait(get_limit_wait(run))
    assert text == "Waiting for provider Local: 10,000 tokens per minute"


def test_a_reply_corrects_the_estimate_of_its_tokens(broker):
    with model_server(script=["Fine."]) as server:
        agent = agent_of(server, tokens_per_minute=60_000)
        run = executed(agent)

    assert run.status == "succeeded"
    left = 6_000 - (run.input_tokens + run.output_tokens)
    key = f"rate:{agent.provider_id}:tokens"
    assert buckets.take([BucketUse(key, 60_000, left - 300)]) == [0]


def test_a_provider_without_rates_takes_nothing(broker):
    with model_server(script=["Fine."]) as server:
        executed(agent_of(server))

    assert list(itertools.islice(broker.scan_iter("rate:*"), 1)) == []
