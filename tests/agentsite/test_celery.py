"""How a message reaches the broker, and how long a web request waits for it."""

import json
import signal
from contextlib import suppress
from pathlib import Path

import pytest
import redis
from django.db import connections
from kombu.exceptions import OperationalError

from agentsite.celery import app, set_worker_timeouts
from agentsite.database import parse_database_url
from agentsite.env import QUEUES
from agentsite.worker.broker import slots
from tests.faults.site import run_python
from tests.support.servers import start_redis
from tests.support.timing import wait_until

PATIENCE = 3
"""Seconds; a hung broker may cost a web request no more."""


@pytest.fixture
def broker(tmp_path):
    """An own server, to be broken."""
    socket = tmp_path / "broker.sock"
    server = start_redis(socket)
    yield server, socket
    server.kill()
    server.wait()


def ring(socket, run_id: int) -> None:
    with app.connection_for_write(f"redis+socket://{socket}") as connection:
        app.send_task("runs.execute_run", args=[run_id], connection=connection)


def test_a_message_is_an_id_in_the_live_queue(broker):
    _, socket = broker

    ring(socket, 7)

    with redis.Redis(unix_socket_path=str(socket)) as client:
        message = json.loads(client.lpop("live"))
    assert message["headers"]["task"] == "runs.execute_run"
    assert message["headers"]["argsrepr"] == "[7]"


def test_a_broker_that_is_away_is_an_error(tmp_path):

    with pytest.raises(OperationalError):
        ring(tmp_path / "nobody.sock", 7)


def test_a_broker_that_hangs_is_an_error(broker):
    server, socket = broker
    server.send_signal(signal.SIGSTOP)

    with pytest.raises(OperationalError):
        ring(socket, 7)


def test_workers_wait_longer_than_web_requests():
    worker = app.__class__("worker", set_as_current=False)
    worker.config_from_object("django.conf:settings", namespace="CELERY")

    set_worker_timeouts(conf=worker.conf)

    assert worker.conf.broker_transport_options["socket_timeout"] > 5
    assert app.conf.broker_transport_options["socket_timeout"] < 1


def test_workers_wait_longer_for_the_database(monkeypatch):
    entry = parse_database_url("postgresql://127.0.0.1/x", data=Path("/"), pool=5)
    monkeypatch.setitem(connections.settings, "default", entry)
    before = entry["OPTIONS"]["pool"]["timeout"]

    set_worker_timeouts(conf=app.__class__("worker", set_as_current=False).conf)

    assert before < 5 < entry["OPTIONS"]["pool"]["timeout"]


@pytest.mark.slow
def test_every_thread_sends_tasks_to_our_broker(tmp_path):
    code = (
        "import django; django.setup()\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from celery import current_app\n"
        "print(current_app.main)\n"
        "print(ThreadPoolExecutor(1).submit(lambda: current_app.main).result())"
    )

    done = run_python(tmp_path, code)

    assert done.stdout.split() == ["agentsite", "agentsite"]


@pytest.mark.slow
def test_a_worker_leaves_the_queues_of_its_helper_alone(broker, monkeypatch):
    _, socket = broker
    found, delegated = [], {"bulk"}
    monkeypatch.setattr(slots, "find_delegated", lambda: delegated)
    with app.connection_for_write(f"redis+socket://{socket}") as connection:
        queues = {name: connection.SimpleQueue(name).queue for name in QUEUES}
        for run, name in enumerate(QUEUES):
            app.send_task(
                "runs.execute_run", args=[run], queue=name, connection=connection
            )
        with connection.Consumer(
            list(queues.values()),
            callbacks=[lambda _, message: found.append(message.delivery_info)],
            no_ack=True,
        ):

            def drain() -> int:
                with suppress(TimeoutError):
                    connection.drain_events(timeout=0.5)
                return len(found)

            wait_until(lambda: drain() >= len(QUEUES) - 1)
            for _ in range(2 * len(QUEUES)):
                drain()
            before = [each["routing_key"] for each in found]
            delegated.clear()
            wait_until(lambda: drain() > len(before))
    after = [each["routing_key"] for each in found[len(before) :]]

    assert sorted(before) == ["deliveries", "live", "schedules"]
    assert after == ["bulk"]


@pytest.mark.slow
def test_a_signal_is_logged_and_not_printed(tmp_path):
    code = """
import os, signal
from types import SimpleNamespace
import django; django.setup()
from celery.apps import worker
from celery.signals import celeryd_init
from agentsite.celery import app
celeryd_init.send(sender="w", conf=app.conf)
worker.install_worker_term_handler(SimpleNamespace(hostname="w"))
os.kill(os.getpid(), signal.SIGTERM)
"""

    done = run_python(tmp_path, code, AGENTSITE_LOG_FORMAT="json")

    assert done.stdout == ""
    events = [json.loads(line)["event"] for line in done.stderr.splitlines()]
    assert events == ["worker: Warm shutdown (MainProcess)"]
