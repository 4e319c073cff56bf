"""Django's handler with one hop a request."""

import asyncio
import threading
from concurrent.futures import wait
from typing import Any

import pytest
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import override_settings
from django.urls import path

from agentsite.threaded import CHUNK_BYTES, THREADS, RequestThreads, ThreadedHandler
from tests.support.timing import wait_until
from tools.net.client_disconnect import watch_disconnect

POURED = 9
"""Pieces of a long answer."""
both = threading.Barrier(2, timeout=30)


@login_not_required
def echo(request: HttpRequest) -> HttpResponse:
    answer = HttpResponse(request.body, status=201, headers={"X-One": "1"})
    answer.set_cookie("a", "b")
    answer.set_cookie("c", "d")
    return answer


@login_not_required
def meet(request: HttpRequest) -> HttpResponse:
    both.wait()
    return HttpResponse(threading.current_thread().name)


@login_not_required
def drip(request: HttpRequest) -> StreamingHttpResponse:
    async def drops():
        yield b"one "
        yield b"two"

    return StreamingHttpResponse(drops())


made: list[str] = []
"""What `pour` has done so far."""


@login_not_required
def pour(request: HttpRequest) -> StreamingHttpResponse:
    def drops():
        try:
            for _ in range(POURED):
                made.append("drop")
                yield b"x" * CHUNK_BYTES
        finally:
            made.append("closed")

    made.clear()
    return StreamingHttpResponse(drops())


@login_not_required
def wait_for_client(request: HttpRequest) -> HttpResponse:
    made.append(watch_disconnect(request).wait(30))
    return HttpResponse()


@login_not_required
def fail(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("secret")


urlpatterns = [
    path("echo", echo, name="echo"),
    path("meet", meet, name="meet"),
    path("drip", drip, name="drip"),
    path("pour", pour, name="pour"),
    path("fail", fail, name="fail"),
    path("leave", wait_for_client, name="leave"),
]

pytestmark = [
    pytest.mark.urls("tests.agentsite.test_threaded"),
    pytest.mark.django_db(transaction=True),
]


async def ask(
    handler: ThreadedHandler, url: str, body: bytes = b"", *, most: int = 999
) -> list[Any]:
    """Send one request; return the messages of the answer, and go after `most`."""
    scope = {
        "type": "http",
        "method": "GET",
        "path": url,
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    inbox = [{"type": "http.request", "body": body}]
    sent = []
    is_enough = asyncio.Event()
    if most == 0:
        is_enough.set()

    async def receive():
        if inbox:
            return inbox.pop(0)
        await is_enough.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append({**message, "made": len(made)})
        if len(sent) >= most:
            is_enough.set()
            await asyncio.sleep(0)  # as a server does, let others go on

    await handler(scope, receive, send)
    return sent


def answer_of(url: str, body: bytes = b"") -> tuple[int, dict[bytes, bytes], bytes]:
    start, *parts = asyncio.run(ask(ThreadedHandler(), url, body))
    text = b"".join(part.get("body", b"") for part in parts)
    return start["status"], start["headers"], text


def test_carries_body_headers_and_each_cookie():
    status, headers, body = answer_of("/echo", b"\x00hello")

    assert (status, body) == (201, b"\x00hello")
    assert (b"X-One", b"1") in headers
    cookies = [value for name, value in headers if name == b"Set-Cookie"]
    assert [cookie[:4] for cookie in cookies] == [b"a=b;", b"c=d;"]


def test_two_requests_run_concurrently():
    async def two():
        handler = ThreadedHandler()
        return await asyncio.gather(ask(handler, "/meet"), ask(handler, "/meet"))

    names = {sent[1]["body"] for sent in asyncio.run(two())}

    assert len(names) == 2
    assert all(name.startswith(b"request") for name in names)


def test_a_stream_arrives_whole():
    assert answer_of("/drip")[2] == b"one two"


def test_a_synchronous_stream_is_sent_as_it_is_made():
    start, *pieces, last = asyncio.run(ask(ThreadedHandler(), "/pour"))

    assert [piece["made"] for piece in pieces] == list(range(1, POURED + 1))
    assert {len(piece["body"]) for piece in pieces} == {CHUNK_BYTES}
    assert (last["body"], last["more_body"]) == (b"", False)
    assert made[-1] == "closed"


def test_a_stream_stops_when_the_client_disconnects():
    asyncio.run(ask(ThreadedHandler(), "/pour", most=3))

    assert made == ["drop", "drop", "closed"]


def test_a_view_learns_that_its_client_has_left():
    asyncio.run(ask(ThreadedHandler(), "/leave", most=0))

    assert made[-1] is True


@override_settings(DEBUG=False)
@pytest.mark.filterwarnings("ignore")
def test_an_exception_is_a_500():
    status, _, body = answer_of("/fail")

    assert status == 500
    assert b"secret" not in body


def test_requests_that_all_hang_are_noticed():
    threads, release = RequestThreads(), threading.Event()
    jobs = [threads.submit(release.wait) for _ in range(THREADS - 1)]
    assert threads.seconds_without_progress == 0

    jobs.append(threads.submit(release.wait))
    wait_until(lambda: threads.seconds_without_progress > 0)

    release.set()
    wait(jobs)
    wait_until(lambda: threads.seconds_without_progress == 0)
    threads.shutdown()
