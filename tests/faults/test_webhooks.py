"""Webhooks while things break: what is to be told is told, at least once."""

import pytest
import redis
from django.conf import settings

from runs.models import Delivery, Webhook
from runs.services.health.invariants import check_invariants
from runs.store.outbox import EVENT_BY_STATUS
from tests.fakes.listener import Listener, http, listener
from tests.fakes.model_server import model_server
from tests.make import make_delivery, make_webhook
from tests.worker.run_parts import agent_on, started

pytestmark = pytest.mark.faults

HERE = {"AGENTSITE_PRIVATE_HOSTS": "provider=127.0.0.1;webhook=127.0.0.1"}
PATIENT = {**HERE, "AGENTSITE_LEASE_SECONDS": "30"}
"""No attempt is given to another worker because the machine is busy."""


def webhook_at(server: Listener, owner) -> Webhook:
    return make_webhook(owner, url=f"http://127.0.0.1:{server.port}/hook")


def is_delivered() -> bool:
    return Delivery.objects.filter(status="delivered").exists()


def ids_heard(server: Listener) -> list[bytes]:
    return [x.split(b"webhook-id: ")[1].split(b"\r\n")[0] for x in server.heard]


def test_two_workers_tell_of_a_run_once(workers):
    with (
        model_server(script=["Hello."]) as model,
        listener(answer=http("200 OK")) as server,
    ):
        agent = agent_on(model)
        webhook_at(server, agent.owner)
        for _ in range(2):
            workers.start(**PATIENT)
        run = workers.wait_for(started(agent))
        workers.wait(is_delivered)

    assert server.knocks == 1
    message = Delivery.objects.get()
    assert (message.run, message.event) == (run, EVENT_BY_STATUS["succeeded"])
    assert list(check_invariants()) == []


@pytest.mark.slow
def test_what_a_killed_worker_was_sending_is_sent_by_the_next(workers):
    answers = []

    def answer(sock):
        """Hang, and answer who asks again."""
        answers.append(sock)
        if len(answers) == 1:
            sock.recv(1)  # until the worker is gone
        else:
            http("200 OK")(sock)

    with listener(answer=answer) as server:
        delivery = make_delivery(webhook_at(server, None), enqueued_at=None)
        first = workers.start(**HERE, AGENTSITE_LEASE_SECONDS="8")
        workers.wait(lambda: answers)
        first.kill()
        workers.start(**HERE, AGENTSITE_LEASE_SECONDS="8")
        workers.wait(is_delivered)

    delivery.refresh_from_db()
    assert delivery.attempts >= 2
    assert len(set(ids_heard(server))) == 1


def test_a_wakeup_that_was_wiped_is_sent_again(workers):
    with listener(answer=http("200 OK")) as server:
        make_delivery(webhook_at(server, None), enqueued_at=None)
        with redis.Redis.from_url(settings.REDIS_URL) as broker:
            broker.flushall()
        workers.start(**PATIENT)
        workers.wait(is_delivered)

    assert server.knocks == 1
