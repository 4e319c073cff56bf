"""What a program is sent that waits for its run, and what its leaving does."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from runs.live.asgi import LiveApp
from runs.live.auth import Credentials
from runs.live.run_feed import FollowedRun
from runs.models import ApiToken, Run
from runs.openai import relay as relay_module
from runs.openai.chat import ChatAnswer
from runs.openai.relay import Relay
from runs.services.accounts.tokens import create_token
from tests.live.hub_parts import commit_end
from tests.make import make_decision, make_run, make_step
from tests.support.threads import in_thread
from tests.support.timing import wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("redis_url"),
]


class Connection:
    """A client that reads a stream until it leaves."""

    def __init__(self) -> None:
        self.body = b""
        self.app = LiveApp()
        self._left: asyncio.Event | None = None
        self.is_deaf = False
        """Whether it takes nothing more."""

    def leave(self) -> None:
        assert self._left is not None
        self._loop.call_soon_threadsafe(self._left.set)

    def leave_once(self) -> bool:
        """Leave as soon as the stream is followed."""
        if any(self.app._open_streams.values()):
            self.leave()
            return True
        return False

    def stop_server(self) -> None:
        self._loop.call_soon_threadsafe(self.app.hub.stop_streams)

    async def receive(self) -> dict[str, Any]:
        assert self._left is not None
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        if self.is_deaf:
            raise TimeoutError
        self.body += message.get("body", b"")

    def follow(
        self,
        run: Run,
        meanwhile: Callable[[], object],
        *,
        stream: bool = True,
        cancels: bool = True,
    ) -> None:
        """Send the answer of `run` to this client, and do something meanwhile."""

        secret = create_token(run.owner)

        async def scene() -> None:
            self._loop, self._left = asyncio.get_running_loop(), asyncio.Event()
            followed = FollowedRun(run.pk, run.owner, Credentials(token=secret))
            answer = ChatAnswer(run_id=run.pk, model="m", created=0)
            relay = Relay(followed, answer, streams_text=True, cancels=cancels)
            response = relay.respond(stream=stream)
            try:
                async with asyncio.timeout(60):
                    await asyncio.gather(
                        response.send_later([], self.receive, self.send),
                        in_thread(meanwhile),
                    )
            finally:
                await self.app.hub.stop()
                await asyncio.to_thread(self.app.hub._thread.shutdown, True)

        asyncio.run(scene())

    @property
    def chunks(self) -> list[Any]:
        blocks = self.body.decode().split("\n\n")
        return [json.loads(one[6:]) for one in blocks if one.startswith("data: {")]


@pytest.fixture
def client(monkeypatch) -> Connection:
    connection = Connection()
    monkeypatch.setattr(relay_module, "live_app", connection.app)
    return connection


def begun(client: Connection) -> None:
    wait_until(lambda: b"data: " in client.body)


@pytest.mark.parametrize("cancels", [True, False])
def test_leaving_cancels_the_run_unless_the_agent_says_otherwise(client, cancels):
    run = make_run()

    def leave() -> None:
        begun(client)
        client.leave()

    client.follow(run, leave, cancels=cancels)

    run.refresh_from_db()
    assert run.status == ("canceled" if cancels else "queued")


def test_leaving_a_request_without_a_stream_cancels_the_run_too(client):
    run = make_run()
    client.follow(run, lambda: wait_until(client.leave_once), stream=False)

    run.refresh_from_db()
    assert (run.status, client.body) == ("canceled", b"")


def test_a_client_that_takes_nothing_has_left(client):
    run = make_run()
    client.is_deaf = True
    client.follow(run, lambda: None)

    run.refresh_from_db()
    assert run.status == "canceled"


def test_a_run_that_is_over_stays_as_it_is(client):
    run = make_run(status="succeeded")
    client.follow(run, lambda: None)

    run.refresh_from_db()
    assert run.status == "succeeded"
    assert client.chunks[-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("stream", [True, False])
def test_a_server_that_stops_cancels_nothing_and_says_where_the_run_is(client, stream):
    run = make_run()

    def stop() -> None:
        if stream:
            begun(client)
        else:
            wait_until(lambda: client.app._open_streams[run.owner_id])
        client.stop_server()

    client.follow(run, stop, stream=stream)

    run.refresh_from_db()
    assert run.status == "queued"
    assert f"/runs/{run.pk}/".encode() in client.body


def test_a_revoked_token_ends_the_stream_and_not_the_run(client, monkeypatch):
    for module in ("runs.live.run_feed", "runs.live.hub"):
        monkeypatch.setattr(f"{module}.SILENCE_SECONDS", 0.1)
    monkeypatch.setattr("runs.live.asgi.ACCESS_CACHE_SECONDS", 0.05)
    run = make_run()

    def revoke() -> None:
        begun(client)
        ApiToken.objects.update(revoked_at=timezone.now())

    client.follow(run, revoke)

    run.refresh_from_db()
    assert run.status == "queued"
    assert "error" in client.chunks[-1]


def test_an_approval_of_a_sub_agent_is_announced_once(client, monkeypatch):
    monkeypatch.setattr("runs.live.hub.SILENCE_SECONDS", 0.1)
    run = make_run(status="waiting")
    step = make_step(run, status="started")
    child = make_run(run.owner, status="awaiting_approval", parent_step=step)
    decision = make_decision(make_step(child, tool="send_mail"))

    def finish() -> None:
        wait_until(lambda: client.body.count(b": still here") > 3)
        commit_end(run)

    client.follow(run, finish)

    told = [one["approval"] for one in client.chunks if "approval" in one]
    assert [one["tool"] for one in told] == ["send_mail"]
    assert told[0]["url"].endswith(f"/approvals/{decision.pk}/")
