"""The broker killed, wiped, hung or away: no run is lost, no submit waits."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from django.conf import settings

from runs.models import Run
from tests.conftest import start_redis
from tests.fakes.model_server import model_server
from tests.faults import functions  # noqa: F401  (registers the tools)
from tests.worker.run_parts import agent_on, call, started

pytestmark = pytest.mark.faults


class Broker:
    """A private Redis where the settings look for one, to be broken."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.process: subprocess.Popen[bytes] = start_redis(socket)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.socket.unlink(missing_ok=True)

    def come_back(self) -> None:
        self.process = start_redis(self.socket)

    def hang(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def wipe(self) -> None:
        with redis.Redis(unix_socket_path=str(self.socket)) as client:
            client.flushall()


@pytest.fixture
def broker(redis_url: str) -> Iterator[Broker]:
    """A broker of this test's own, in the place of the session's."""
    socket = Path(settings.REDIS_URL.removeprefix("unix://"))
    aside = socket.with_suffix(".aside")
    os.rename(socket, aside)
    found = Broker(socket)
    yield found
    found.wake()
    found.kill()
    os.rename(aside, socket)


@pytest.mark.slow
def test_a_run_survives_kill_9_of_the_broker(broker, workers):
    script = [call("look", what="it", seconds=2.0), "Seen."]
    with model_server(script=script) as server:
        workers.start()
        run = started(agent_on(server, "look"))
        workers.wait_for_line("look it")
        broker.kill()
        workers.wait_for(run)
        broker.come_back()

    assert workers.ledger == ["look it"]


@pytest.mark.slow
def test_a_wakeup_that_was_wiped_is_sent_again(broker, workers):
    with model_server(script=["Hello."]) as server:
        run = started(agent_on(server))
        broker.wipe()
        workers.start()
        workers.wait_for(run)


@pytest.mark.parametrize("state", ["down", "hung"])
def test_a_run_is_accepted_and_finishes_later(broker, workers, state, record_property):
    with model_server(script=["Hello."]) as server:
        workers.start()
        agent = agent_on(server)
        broker.kill() if state == "down" else broker.hang()
        began = time.monotonic()
        run = started(agent)
        record_property("seconds", time.monotonic() - began)
        assert Run.objects.get(pk=run.pk).status == "queued"
        broker.come_back() if state == "down" else broker.wake()
        workers.wait_for(run)
