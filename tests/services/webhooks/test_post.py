"""One POST to a webhook: real sockets, and everything an address can do wrong."""

import itertools
import socket
import threading

import pytest

from runs.services.webhooks import post as posting
from runs.services.webhooks.post import (
    MAX_STORED_CHARS,
    PostResult,
    get_webhook_net_policy,
    post_delivery,
)
from tests.fakes.listener import Answer, http, listener
from tests.tools.net.test_netguard_hostile import SPELLINGS, hostile_resolver
from tools.net.netguard import NetPolicy, parse_private_hosts

HEADERS = {"webhook-id": "msg_1"}


def post(url: str, *, seconds: float = 20.0) -> PostResult:
    """Send to an address on loopback, which the policy allows here."""
    hosts = parse_private_hosts("webhook=127.0.0.1")["webhook"]
    policy = NetPolicy(use="webhook", private_hosts=hosts)
    return post_delivery(url, b'{"a": 1}', HEADERS, policy=policy, seconds=seconds)


def posted_to(answer: Answer | None, *, seconds: float = 20.0) -> PostResult:
    """Send to a server that answers so."""
    with listener("127.0.0.1", answer) as server:
        return post(f"http://127.0.0.1:{server.port}/hook?key=1", seconds=seconds)


def raw(*pieces: bytes, then: threading.Event | None = None) -> Answer:
    """Return an answer that sends these bytes and, with `then`, keeps silent."""

    def send(sock):
        for piece in pieces:
            sock.sendall(piece)
        if then is not None:
            then.wait(20)

    return send


def test_posts_the_body_with_its_headers():
    with listener("127.0.0.1", http("204 No Content")) as server:
        posted = post(f"http://127.0.0.1:{server.port}/hook?key=1")

    head, _, body = server.heard[0].partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    assert lines[0] == "post /hook?key=1 http/1.1"
    assert {"webhook-id: msg_1", "content-type: application/json"} <= set(lines)
    assert body == b'{"a": 1}'
    assert (posted.response_status, posted.error) == (204, "")


def test_keeps_the_beginning_of_the_answer():
    posted = posted_to(http("200 OK", body=b"ok \x00" + b"x" * 2_000))

    assert posted.response_text.startswith("ok \ufffdxx")
    assert len(posted.response_text) == MAX_STORED_CHARS


@pytest.mark.parametrize("status", ["500 Oh", "404 Not Found", "429 Slow down"])
def test_what_is_no_success_is_said_with_its_number(status):
    posted = posted_to(http(status, body=b"no"))

    assert posted.error == f"The server responded with {status[:3]}."
    assert (posted.response_status, posted.response_text) == (int(status[:3]), "no")
    assert not posted.is_final


def test_a_redirect_is_not_followed():
    with listener("127.0.0.1", http("200 OK")) as other:
        moved = http("302 Found", f"Location: http://127.0.0.1:{other.port}/")
        posted = posted_to(moved)

    assert posted.response_status == 302
    assert "Redirects are not followed" in posted.error
    assert other.knocks == 0


def test_an_endless_answer_is_taken_for_what_its_status_says():
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"
    posted = posted_to(raw(head, b"x" * 1_000_000))

    assert (posted.response_status, posted.error) == (200, "")
    assert len(posted.response_text) == MAX_STORED_CHARS


def test_silence_ends_when_the_time_is_over():
    over = threading.Event()
    posted = posted_to(raw(then=over), seconds=0.3)
    over.set()

    assert posted.error == "No response within 0.3 s."
    assert posted.response_status is None


def test_an_answer_that_drips_ends_when_the_time_is_over():
    over = threading.Event()

    def drip(sock):
        for letter in itertools.cycle(b"HTTP/1.1 200 OK\r\nX: "):
            sock.sendall(bytes([letter]))
            if over.wait(0.02):
                return

    posted = posted_to(drip, seconds=0.3)
    over.set()

    assert posted.error == "No response within 0.3 s."


def test_a_text_that_does_not_end_undoes_no_success(monkeypatch):
    monkeypatch.setattr(posting, "BODY_TIMEOUT_SECONDS", 0.2)
    over = threading.Event()
    begun = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nthanks"
    posted = posted_to(raw(begun, then=over))
    over.set()

    assert (posted.response_status, posted.response_text, posted.error) == (
        200,
        "thanks",
        "",
    )


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        pytest.param([], "was lost before a response", id="closed"),
        pytest.param([b"HTTP/1.1 2"], "was lost before a response", id="half"),
        pytest.param([b"220 smtp\r\n\r\n"], "was lost before a response", id="no-http"),
    ],
)
def test_what_is_no_answer_is_said(sent, says):
    posted = posted_to(raw(*sent))

    assert says in posted.error
    assert not posted.is_final


def test_a_host_that_is_no_punycode_is_final():
    posted = post("http://xn--0.pt/hook")

    assert posted.is_final
    assert "Invalid A-label" in posted.error


def test_nobody_listening_is_said():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # taken, so that nobody else listens there
        posted = post(f"http://127.0.0.1:{silent.getsockname()[1]}/")

    assert posted.error.startswith("Connection failed: ")
    assert not posted.is_final


@pytest.mark.parametrize("name", SPELLINGS)
def test_no_spelling_reaches_inside(name, monkeypatch):
    monkeypatch.setattr("tools.net.netguard.resolve_by_system", hostile_resolver)
    with listener() as four, listener("::1") as six:
        for one in (four, six):
            url = SPELLINGS[name].replace("{port}", str(one.port))
            posted = post_delivery(
                url, b"{}", HEADERS, policy=get_webhook_net_policy(), seconds=5
            )
            assert posted.is_final, posted

    assert (four.knocks, six.knocks) == (0, 0)


def test_the_policy_is_that_of_webhooks(settings):
    settings.PRIVATE_HOSTS = "tool=127.0.0.1;webhook=10.0.0.5:8080"

    policy = get_webhook_net_policy()
    assert policy.use == "webhook"
    assert [str(one.network) for one in policy.private_hosts] == ["10.0.0.5/32"]
    assert policy.own_ports == frozenset(settings.OWN_PORTS)
