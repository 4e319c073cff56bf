"""Tests of the small client: the guard's promises hold for it too."""

import gzip
import socket
import struct
import threading

import httpx
import pytest

from tests.fakes.listener import http, listener
from tools.errors import CallCanceled
from tools.net.deadline import Deadline
from tools.net.netguard import (
    AddressRefused,
    KeepAliveClient,
    NetPolicy,
    ResponseRefused,
    ResponseTooLarge,
    open_client,
    parse_private_hosts,
)


def make_client(listed: str = "127.0.0.1", **more: object) -> KeepAliveClient:
    hosts = parse_private_hosts(f"tool={listed}")["tool"]
    fields: dict[str, object] = {"timeout": 2.0, **more}
    policy = NetPolicy(private_hosts=hosts)
    return open_client(policy, **fields)  # type: ignore[arg-type]


def call(
    client: KeepAliveClient, url: str, body: bytes | None = None
) -> tuple[int, bytes]:
    """Return status and content of one call."""
    with client.exchange(
        httpx.URL(url), b"X-Key: k\r\n", body, deadline=Deadline(seconds=5)
    ) as answer:
        return answer.status, b"".join(answer.chunks)


def kept(*answers: bytes):
    """Return an answerer that keeps its connection open for several answers."""

    def answer(sock):
        for number, one in enumerate(answers):
            if number:
                sock.recv(65536)
            sock.sendall(one)

    return answer


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKS = b"1\r\no\r\n1\r\nk\r\n0\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS


@pytest.mark.parametrize("first", [OK, CHUNKED], ids=["length", "chunked"])
def test_keeps_its_connection(first):
    with listener(answer=kept(first, OK)) as there:
        client = make_client()
        url = f"http://127.0.0.1:{there.port}/a?b=c"
        answers = [call(client, url, b"{}"), call(client, url)]
        client.close()

    assert answers == [(200, b"ok"), (200, b"ok")]
    assert there.knocks == 1
    assert there.heard[0].startswith(b"POST /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nX-Key: k\r\nContent-Length: 2\r\n" in there.heard[0]


@pytest.mark.parametrize(
    "first",
    [
        OK,
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
    ],
    ids=["closed silently", "until the end", "closed as told"],
)
def test_opens_another_connection_where_the_server_closed(first):
    with listener(answer=kept(first)) as there:
        client = make_client()
        url = f"http://127.0.0.1:{there.port}/"
        answers = [call(client, url), call(client, url)]
        client.close()

    assert answers == [(200, b"ok"), (200, b"ok")]
    assert there.knocks == 2


def closing_on_the_next(*, reset: bool, piece: bytes = b""):
    """Answer, then read the next request and close, with a reset or without."""

    def answer(sock):
        sock.sendall(OK)
        received = sock.recv(65536)
        if received:
            sock.sendall(piece)
        if reset:
            linger = struct.pack("ii", 1, 0)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    return answer


@pytest.mark.parametrize("reset", [True, False], ids=["reset", "closed"])
def test_asks_again_where_the_kept_connection_ends_before_an_answer(reset):
    with listener(answer=closing_on_the_next(reset=reset)) as there:
        client = make_client()
        url = f"http://127.0.0.1:{there.port}/"
        answers = [call(client, url), call(client, url)]
        client.close()

    assert answers == [(200, b"ok"), (200, b"ok")]
    assert there.knocks == 2


def test_does_not_ask_again_once_an_answer_has_begun():
    answer = closing_on_the_next(reset=False, piece=b"HTTP/1.1 2")
    with listener(answer=answer) as there:
        client = make_client()
        url = f"http://127.0.0.1:{there.port}/"
        call(client, url)
        with pytest.raises(httpx.TransportError):
            call(client, url)
        client.close()

    assert there.knocks == 1


def test_a_new_connection_that_ends_is_not_tried_twice():
    with listener(answer=kept(b"")) as there:
        client = make_client()
        with pytest.raises(httpx.TransportError):
            call(client, f"http://127.0.0.1:{there.port}/")
        client.close()

    assert there.knocks == 1


def test_early_hints_are_not_the_answer():
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    with listener(answer=kept(hints + OK)) as there:
        client = make_client()
        assert call(client, f"http://127.0.0.1:{there.port}/") == (200, b"ok")
        client.close()


def test_a_redirect_is_an_answer():
    with listener(answer=http("302 Found", "Location: http://10.0.0.1/")) as there:
        client = make_client()
        assert call(client, f"http://127.0.0.1:{there.port}/")[0] == 302
        client.close()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
    ],
    ids=[
        "nothing",
        "nonsense",
        "no status",
        "short body",
        "short chunk",
        "no chunk",
        "no last chunk",
        "many headers",
        "long header",
    ],
)
def test_a_broken_answer_is_a_transport_error(raw):
    with listener(answer=kept(raw)) as there:
        client = make_client()
        with pytest.raises(httpx.TransportError):
            call(client, f"http://127.0.0.1:{there.port}/")
        client.close()


def test_the_limit_holds_after_unpacking():
    body = gzip.compress(b"x" * 3000)
    answer = http("200 OK", "Content-Encoding: gzip", body=body)
    with listener(answer=answer) as there:
        client = make_client(max_bytes=2000)
        with pytest.raises(ResponseTooLarge):
            call(client, f"http://127.0.0.1:{there.port}/")
        client.close()


def test_an_encoding_nobody_asked_for_is_refused():
    with listener(answer=http("200 OK", "Content-Encoding: br")) as there:
        client = make_client()
        with pytest.raises(ResponseRefused, match="'br'"):
            call(client, f"http://127.0.0.1:{there.port}/")
        client.close()


def test_addresses_are_checked():
    client = make_client("127.0.0.2")
    with listener() as there, pytest.raises(AddressRefused):
        call(client, f"http://127.0.0.1:{there.port}/")

    assert there.knocks == 0


def test_plain_answers_to_tls_are_no_connection():
    with listener(answer=http("400 Bad Request")) as there:
        client = make_client()
        with pytest.raises(httpx.ConnectError):
            call(client, f"https://127.0.0.1:{there.port}/")


def test_a_raised_flag_stops_it_before_it_begins():
    flag = threading.Event()
    flag.set()
    client = make_client()
    url = httpx.URL("http://127.0.0.1:1/")
    with (
        pytest.raises(CallCanceled),
        client.exchange(url, b"", None, deadline=Deadline(flag=flag)),
    ):
        pass
