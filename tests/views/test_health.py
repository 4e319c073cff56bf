"""`/healthz` and `/readyz`."""

import socket
import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest
import redis
from django.db import OperationalError, connection
from django.utils import timezone

from runs.models import HealthProbe, ProviderOutage
from runs.services.health import status
from tests.make import make_provider, make_run, make_worker
from tests.support.servers import start_redis

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def checks_write(monkeypatch):
    """Let each request check the database anew."""
    monkeypatch.setattr(status, "MAX_AGE_SECONDS", -1.0)


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


def test_a_broker_without_free_memory_is_degraded(client, settings, tmp_path):
    make_worker()
    socket = tmp_path / "full.sock"
    server = start_redis(socket)
    with redis.Redis(unix_socket_path=str(socket)) as full:
        full.config_set("maxmemory", 1)
    settings.REDIS_URL = f"unix://{socket}"

    answer = client.get("/healthz")
    server.kill()
    server.wait()

    assert answer.status_code == 200
    assert answer.json()["degraded"] == ["broker"]


def test_a_broker_whose_queue_cannot_be_read_is_degraded(client, settings, tmp_path):
    make_worker()
    socket = tmp_path / "other.sock"
    server = start_redis(socket)
    with redis.Redis(unix_socket_path=str(socket)) as other:
        other.set(settings.CELERY_TASK_DEFAULT_QUEUE, "not a list")
    settings.REDIS_URL = f"unix://{socket}"

    answer = client.get("/healthz")
    server.kill()
    server.wait()

    assert answer.json()["degraded"] == ["broker"]


def test_the_database_is_really_written(client, redis_url):
    before = timezone.now() - timedelta(minutes=1)
    HealthProbe.objects.create(pk=1, written_at=before)

    client.get("/readyz")

    assert HealthProbe.objects.get().written_at > before


def test_a_second_check_within_a_second_writes_nothing(
    client, redis_url, monkeypatch, django_assert_num_queries
):
    monkeypatch.setattr(status, "MAX_AGE_SECONDS", 60.0)
    client.get("/readyz")

    with django_assert_num_queries(0):
        assert client.get("/readyz").status_code == 200
    status.database_check.forget()


def test_readiness_needs_the_database_and_nothing_else(client, settings):
    settings.REDIS_URL = "redis://127.0.0.1:9/0"

    answer = client.get("/readyz")

    assert answer.status_code == 200
    assert answer.json() == {"status": "ok"}


def test_readiness_without_a_database_is_503(client, read_only):
    answer = client.get("/readyz")

    assert answer.status_code == 503
    assert answer.json() == {"status": "down"}


def test_reports_the_queue(client, redis_url):
    make_worker(running=1, threads=1)
    make_run(status="running")
    make_run(queued_at=timezone.now() - timedelta(seconds=90))
    make_run(queued_at=timezone.now())

    queue = client.get("/healthz").json()["queue"]

    assert (queue["queued"], queue["running"], queue["stuck"]) == (2, 1, 0)
    assert 90 <= queue["oldest_wait_seconds"] < 120


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"status": "running", "lease_until": -90}, id="lost-lease"),
        pytest.param({"status": "waiting", "available_at": -90}, id="missed-retry"),
        pytest.param({"status": "queued", "queued_at": -90}, id="not-taken"),
    ],
)
def test_a_run_that_nobody_takes_is_stuck(client, redis_url, fields):
    make_worker(running=0, threads=1)
    make_run(
        **{
            name: timezone.now() + timedelta(seconds=value)
            if isinstance(value, int)
            else value
            for name, value in fields.items()
        }
    )

    found = client.get("/healthz").json()

    assert found["degraded"] == ["stuck_runs"]
    assert found["queue"]["stuck"] == 1


def test_a_nearly_full_disk_of_a_sqlite_database_is_degraded(
    client, redis_url, monkeypatch
):
    make_worker()
    monkeypatch.setattr(status, "count_free_bytes", lambda: 1000)

    found = client.get("/healthz").json()

    assert found["degraded"] == ["disk"]
    assert found["disk"] == {"free_bytes": 1000}


def test_says_nothing_of_names_and_addresses(client, redis_url):
    worker = make_worker(host="secret-host", name="secret-host:7")

    assert worker.host not in client.get("/healthz").text


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
@pytest.mark.parametrize("verb", ["post", "put", "delete"])
def test_is_only_read(client, verb, path):
    assert getattr(client, verb)(path).status_code == 405


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


def test_counts_unavailable_providers_without_their_names(client, redis_url):
    make_worker()
    now, provider = timezone.now(), make_provider(name="Secret lab")
    ProviderOutage.objects.create(provider=provider, started_at=now, probe_at=now)
    for since in (now, None):
        make_run(status="waiting", waiting_provider=provider, waiting_since=since)

    answer = client.get("/healthz")

    assert answer.json()["status"] == "ok"
    assert answer.json()["providers"] == {"unavailable": 1, "waiting_runs": 1}
    assert "Secret" not in answer.content.decode()
