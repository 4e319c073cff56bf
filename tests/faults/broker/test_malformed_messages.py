"""Messages that nobody can read: the worker discards them and carries on."""

import json

import pytest
import redis
from django.conf import settings

from tests.fakes.model_server import model_server
from tests.faults import functions  # noqa: F401  (registers the tools)
from tests.faults.workers import Workers
from tests.worker.run_parts import agent_on, call, started

pytestmark = pytest.mark.faults

TASK = {"task": "runs.execute_run", "id": "x", "lang": "py"}
ENVELOPE = {
    "body": "W1sxXSwge30sIG51bGxd",
    "content-type": "application/json",
    "content-encoding": "utf-8",
    "headers": TASK,
    "properties": {
        "delivery_tag": "x",
        "delivery_info": {"exchange": "", "routing_key": "live"},
        "body_encoding": "base64",
        "correlation_id": "x",
    },
}


def changed(**fields: object) -> str:
    return json.dumps({**ENVELOPE, **fields})


MALFORMED = [
    "garbage{",
    b"\xff\xfe\x00",
    "",
    "7",
    "null",
    "[]",
    '"text"',
    "{}",
    "[" * 100_000,
    '{"properties": {}}',
    changed(properties=None),
    changed(properties={"delivery_tag": {}, "delivery_info": 5}),
    changed(headers=None),
    changed(headers=[1]),
    changed(headers={"task": 5, "id": {}}),
    changed(body="***"),
    changed(body=5),
    changed(body="W10="),
    changed(body="eyJhIjo="),
    changed(**{"content-type": "application/x-python-serialize"}),
    changed(**{"content-encoding": "no-such-encoding"}),
    changed(**{"content-type": 5}),
]


@pytest.mark.parametrize("depth", [1, 20])
def test_malformed_messages_do_not_end_a_worker(workers: Workers, depth: int):
    script = [call("look", what="it", seconds=3.0), "Seen."]
    with (
        model_server(script=script) as server,
        model_server() as other,
        redis.Redis.from_url(settings.REDIS_URL) as client,
    ):
        worker = workers.start(AGENTSITE_LEASE_SECONDS="30")
        run = started(agent_on(server, "look"))
        workers.wait_for_line("look it")

        for message in MALFORMED * depth:
            client.lpush("live", message)
        workers.wait_for(started(agent_on(other)))
        workers.wait_for(run)

        assert client.llen("live") == 0
    assert worker.poll() is None
    assert run.fence == 1
    assert workers.ledger == ["look it"]


@pytest.mark.slow
def test_a_queue_of_another_type_is_waited_for(workers: Workers):
    with (
        model_server() as server,
        redis.Redis.from_url(settings.REDIS_URL) as client,
    ):
        worker = workers.start()
        client.set("live", "a text")
        run = started(agent_on(server))
        workers.wait(lambda: "WRONGTYPE" in workers.said)
        client.delete("live")
        workers.wait_for(run)

    assert worker.poll() is None


def test_a_message_is_not_stored_again_while_a_worker_takes_it(workers: Workers):
    with (
        model_server() as server,
        redis.Redis.from_url(settings.REDIS_URL) as client,
    ):
        workers.start()
        before = client.info("commandstats").get("cmdstat_zadd")
        workers.wait_for(started(agent_on(server)))

        assert client.info("commandstats").get("cmdstat_zadd") == before
