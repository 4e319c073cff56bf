"""`/healthz`."""

import socket
import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from tests.make import make_worker

pytestmark = pytest.mark.django_db


def test_tells_strangers_that_everything_works(client, redis_url):
    make_worker(running=3, threads=50)

    answer = client.get("/healthz")

    assert answer.status_code == 200
    said = answer.json()
    assert (said["status"], said["degraded"]) == ("ok", [])
    assert said["database"]["ok"]
    assert said["broker"]["ok"]
    (worker,) = said["workers"]
    assert (worker["running"], worker["threads"]) == (3, 50)
    assert 0 <= worker["age_seconds"] < 5


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(
            {"last_heartbeat": timezone.now() - timedelta(hours=1)}, id="silent"
        ),
        pytest.param({"stopped_at": timezone.now()}, id="limit_reached"),
    ],
)
def test_without_a_live_worker_it_is_degraded(client, redis_url, fields):
    make_worker(**fields)

    answer = client.get("/healthz")

    assert answer.status_code == 200
    assert answer.json()["status"] == "degraded"
    assert answer.json()["degraded"] == ["worker"]
    assert answer.json()["workers"] == []


def test_without_a_broker_it_is_degraded(client, settings):
    settings.REDIS_URL = "redis://127.0.0.1:9/0"
    make_worker()

    answer = client.get("/healthz")

    assert answer.status_code == 200
    assert answer.json()["degraded"] == ["broker"]


def test_a_hung_broker_does_not_hold_it_up(client, settings):
    make_worker()
    with hung_server() as port:
        settings.REDIS_URL = f"redis://127.0.0.1:{port}/0"

        answer = client.get("/healthz")
    assert answer.json()["degraded"] == ["broker"]


def test_a_database_that_takes_no_writes_is_503(client, redis_url, read_only):
    answer = client.get("/healthz")

    assert answer.status_code == 503
    assert answer.json()["status"] == "down"
    assert not answer.json()["database"]["ok"]


def test_says_nothing_of_names_and_addresses(client, redis_url):
    worker = make_worker(host="secret-host", name="secret-host:7")

    assert worker.host not in client.get("/healthz").text


@pytest.mark.parametrize("verb", ["post", "put", "delete"])
def test_is_only_read(client, verb):
    assert getattr(client, verb)("/healthz").status_code == 405


@pytest.fixture
def read_only():
    """Make the server refuse what writes, as a disk gone read-only does."""

    def refuse(execute, sql, params, many, context):
        if sql.startswith(("UPDATE", "INSERT", "DELETE")):
            raise OperationalError("attempt to write a readonly database")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(refuse):
        yield


@contextmanager
def hung_server():
    """Accept connections and never say a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept = []
        threading.Thread(
            target=lambda: kept.append(server.accept()), daemon=True
        ).start()
        yield server.getsockname()[1]
        for peer, _ in kept:
            peer.close()
