"""The route of the live streams: who is let in, and what a real server sends."""

import asyncio
import json
import signal
import time

import httpx
import pytest
from django.conf import settings
from django.test import Client

from runs.live import asgi
from runs.services.accounts.tokens import create_token
from tests.live.hub_parts import commit_end, commit_outcome, commit_reply
from tests.make import make_run, make_user
from tests.support.threads import in_thread
from tests.support.timing import wait_until
from tests.support.web_server import served

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("redis_url"),
]


@pytest.fixture(scope="module")
def server(django_db_setup, redis_url):
    """The address of a real server that lets each user have two streams."""
    with served(AGENTSITE_USER_STREAMS="2") as (url, _):
        yield url


class Answered(list):
    """The messages of an ASGI answer."""

    @property
    def status(self):
        return self[0]["status"]

    @property
    def body(self):
        return b"".join(message.get("body", b"") for message in self[1:])


def ask(path, *, headers=(), method="GET", seconds=60.0, until=None, meanwhile=id):
    """Ask the ASGI application of the streams; return what it sends until its end."""

    async def scene():
        app = asgi.LiveApp()
        sent = Answered()
        left = asyncio.Event()

        async def receive():
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)
            if until is not None and until in sent.body:
                left.set()

        path_only, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path_only,
            "query_string": query.encode(),
            "headers": [(k.lower().encode(), v.encode()) for k, v in headers],
        }
        try:
            async with asyncio.timeout(seconds):
                doing = in_thread(meanwhile, sent) if meanwhile else asyncio.sleep(0)
                await asyncio.gather(app(scope, receive, send), doing)
        finally:
            if app._hub is not None:
                await app._hub.stop()
                await asyncio.to_thread(app._hub._thread.shutdown, True)
        return sent

    return asyncio.run(scene())


def bearer(user):
    return [("Authorization", f"Bearer {create_token(user)}")]


def session(user):
    client = Client()
    client.force_login(user)
    value = client.cookies[settings.SESSION_COOKIE_NAME].value
    return [("Cookie", f"other=1; {settings.SESSION_COOKIE_NAME}={value}")]


def test_a_session_opens_the_stream_of_its_own_run():
    run = make_run(status="succeeded")
    answer = ask(f"/live/runs/{run.pk}/", headers=session(run.owner))

    assert answer.status == 200
    assert b'hx-target="#run-live" hx-swap="outerHTML"' in answer.body


def test_someone_elses_run_is_not_there():
    run = make_run(status="running")

    answer = ask(f"/live/runs/{run.pk}/", headers=session(make_user()))

    assert answer.status == 404


def test_a_page_is_not_opened_by_a_token():
    run = make_run(status="succeeded")

    assert ask(f"/live/runs/{run.pk}/", headers=bearer(run.owner)).status == 404


def test_a_stranger_is_refused():
    run = make_run(status="running")

    assert ask(f"/live/runs/{run.pk}/").status == 404


def test_only_get_is_answered():
    run = make_run(status="running")

    refused = ask(f"/live/runs/{run.pk}/", method="POST")

    assert refused.status == 405
    assert (b"allow", b"GET") in refused[0]["headers"]


def test_the_right_to_watch_is_checked_again(monkeypatch):
    monkeypatch.setattr("runs.live.hub.SILENCE_SECONDS", 0.2)
    monkeypatch.setattr(asgi, "SILENCE_SECONDS", 0.2)
    monkeypatch.setattr(asgi, "ACCESS_CACHE_SECONDS", 0.05)
    run = make_run(status="running")
    headers = session(run.owner)

    def lock_out(sent):
        wait_until(lambda: b": still here" in sent.body)
        run.owner.is_active = False
        run.owner.save()

    answer = ask(f"/live/runs/{run.pk}/", headers=headers, meanwhile=lock_out)

    assert b": still here" in answer.body
    assert b"run-live" not in answer.body


@pytest.mark.slow
def test_a_real_server_streams_each_event_as_it_is_committed(server):
    run = make_run(status="running")
    seen = []
    with httpx.Client(timeout=60) as client:
        headers = dict(bearer(run.owner))
        path = f"{server}/api/v1/runs/{run.pk}/events"
        with client.stream("GET", path, headers=headers) as answer:
            for line in answer.iter_lines():
                if line == "event: run" and not seen:
                    commit_reply(run)
                if line.startswith("data: ") and '"tool":"look"' in line:
                    seen.append(json.loads(line[6:])["status"])
                    commit_outcome(run) if len(seen) == 1 else commit_end(run)

    assert seen == ["started", "succeeded"]
    assert answer.headers["content-type"].startswith("text/event-stream")


def test_one_user_has_a_limited_number_of_streams(server):
    run = make_run(status="running")
    others = make_run(status="running")
    with httpx.Client(timeout=60) as client:
        path = f"{server}/api/v1/runs/{run.pk}/events"
        headers = dict(bearer(run.owner))
        with client.stream("GET", path, headers=headers) as first:
            with client.stream("GET", path, headers=dict(bearer(run.owner))):
                with client.stream("GET", path, headers=headers) as refused:
                    assert (first.status_code, refused.status_code) == (200, 429)
                    assert refused.headers["retry-after"] == "10"
                other = f"{server}/api/v1/runs/{others.pk}/events"
                their = dict(bearer(others.owner))
                with client.stream("GET", other, headers=their) as answer:
                    assert answer.status_code == 200

            def is_open_again():
                with client.stream("GET", path, headers=headers) as answer:
                    return answer.status_code == 200

            wait_until(is_open_again)


@pytest.mark.slow
def test_a_server_that_is_stopped_ends_its_streams(record_property):
    run = make_run(status="running")
    with served() as (url, server), httpx.Client(timeout=60) as client:
        headers = dict(bearer(run.owner))
        path = f"{url}/api/v1/runs/{run.pk}/events"
        with client.stream("GET", path, headers=headers) as answer:
            lines = answer.iter_lines()
            next(lines)
            began = time.monotonic()
            server.send_signal(signal.SIGTERM)
            for _ in lines:
                pass
        server.wait(60)
        record_property("seconds", time.monotonic() - began)


@pytest.mark.parametrize(
    ("status", "title"), [(404, "Not Found"), (405, "Method Not Allowed")]
)
def test_a_refusal_has_the_shape_of_every_problem_of_the_api(status, title):
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(asgi.send_problem(send, status))

    problem = json.loads(sent[1]["body"])
    assert (b"content-type", b"application/problem+json") in sent[0]["headers"]
    assert problem["type"] == "about:blank"
    assert (problem["title"], problem["status"]) == (title, status)
    assert problem["errors"][0]["message"] == problem["detail"]


def test_turns_of_several_runs_come_in_one_stream_and_end_with_the_last():
    ann = make_user("ann")
    one, two = make_run(ann), make_run(ann)
    client = Client()
    client.force_login(ann)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    mine = [("Cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}")]

    def meanwhile(sent):
        commit_end(one)
        commit_end(two)

    answer = ask(f"/live/turns/{one.pk}-{two.pk}/", headers=mine, meanwhile=meanwhile)

    assert answer.status == 200
    assert f"#turn-answer-{one.pk}".encode() in answer.body
    assert f"#turn-answer-{two.pk}".encode() in answer.body
    assert f'id="turn-live-{one.pk}-{two.pk}" hidden'.encode() in answer.body


def test_a_stream_with_one_hidden_run_among_others_is_not_there():
    ann = make_user("ann")
    one, foreign = make_run(ann), make_run()
    client = Client()
    client.force_login(ann)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    mine = [("Cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}")]

    answer = ask(f"/live/turns/{one.pk}-{foreign.pk}/", headers=mine)

    assert answer.status == 404


def test_a_person_sees_what_needs_them_and_a_stranger_nothing():
    client = Client()
    client.force_login(make_user("ann"))
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value

    mine = ask(
        "/live/me/",
        headers=[("Cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}")],
        until=b"part-health",
    )

    assert mine.status == 200
    assert b'hx-target="#part-needs"' in mine.body
    assert ask("/live/me/").status == 404
