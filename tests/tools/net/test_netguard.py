"""Tests of guarded HTTP: what it lets through, what it keeps back, and when it ends."""

import gzip
import socket
import threading
import time
import zlib

import httpx
import pytest

from tests.fakes.listener import http, listener
from tools.errors import CallCanceled, DeadlineExceeded
from tools.net.deadline import Deadline
from tools.net.netguard import (
    AddressRefused,
    NetPolicy,
    ResponseRefused,
    ResponseTooLarge,
    guarded_client,
    parse_private_hosts,
)


def make_policy(listed: str = "127.0.0.1,::1,127.0.0.2", **more: object) -> NetPolicy:
    hosts = parse_private_hosts(f"tool={listed}")["tool"]
    return NetPolicy(private_hosts=hosts, **more)  # type: ignore[arg-type]  # forwards


def make_client(policy: NetPolicy | None = None, **more: object) -> httpx.Client:
    deadline = more.pop("deadline", None) or Deadline(seconds=5)
    timeout = more.pop("timeout", 2.0)
    return guarded_client(
        policy or make_policy(),
        deadline,  # type: ignore[arg-type]  # forwards
        timeout=timeout,  # type: ignore[arg-type]  # forwards
        **more,  # type: ignore[arg-type]  # forwards
    )


def test_reaches_a_listed_address():
    with (
        listener(answer=http("200 OK", body=b"hello")) as there,
        make_client() as client,
    ):
        assert client.get(f"http://127.0.0.1:{there.port}/").text == "hello"


def test_reaches_a_listed_name_under_that_name_only():
    policy = make_policy("localhost")
    with listener(answer=http("200 OK")) as there, make_client(policy) as client:
        client.get(f"http://localhost:{there.port}/")
        with pytest.raises(AddressRefused, match="AGENTSITE_PRIVATE_HOSTS=tool=127"):
            client.get(f"http://127.0.0.1:{there.port}/")


def test_a_listed_port_is_the_only_one():
    with listener(answer=http("200 OK")) as there:
        with make_client(make_policy(f"127.0.0.1:{there.port}")) as client:
            client.get(f"http://127.0.0.1:{there.port}/")
        with (
            make_client(make_policy("127.0.0.1:1")) as client,
            pytest.raises(AddressRefused),
        ):
            client.get(f"http://127.0.0.1:{there.port}/")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "0.0.0.0", "[::1]"])
def test_the_own_port_is_refused_even_when_listed(host):
    with listener() as there:
        policy = make_policy("0.0.0.0/0,::/0", own_ports=frozenset((there.port,)))
        with make_client(policy) as client, pytest.raises(AddressRefused, match="own"):
            client.get(f"http://{host}:{there.port}/")

    assert there.knocks == 0


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "[::ffff:169.254.169.254]",
        "[fd00:ec2::254]",
        "100.100.100.200",
    ],
)
def test_metadata_is_refused_even_when_listed(host):
    policy = make_policy("0.0.0.0/0,::/0")
    with make_client(policy) as client, pytest.raises(AddressRefused, match="clouds"):
        client.get(f"http://{host}/")


def test_only_the_named_hosts_can_be_called():
    policy = make_policy(
        "localhost,127.0.0.1", only_hosts=("*.example.com", "localhost")
    )
    with listener(answer=http("200 OK")) as there, make_client(policy) as client:
        client.get(f"http://localhost:{there.port}/")
        with pytest.raises(AddressRefused, match="not among the hosts"):
            client.get(f"http://127.0.0.1:{there.port}/")


SECRETS = {
    "Authorization": "Bearer s3cret",
    "X-Api-Key": "s3cret",
    "Cookie": "id=s3cret",
    "Proxy-Authorization": "Basic s3cret",
}


def test_secrets_are_not_forwarded_to_another_host():
    with listener("127.0.0.2", http("200 OK")) as other:
        target = f"Location: http://127.0.0.2:{other.port}/there"
        with (
            listener(answer=http("302 Found", target)) as there,
            make_client() as client,
        ):
            answer = client.get(f"http://127.0.0.1:{there.port}/", headers=SECRETS)

    assert b"s3cret" in there.heard[0]
    assert b"s3cret" not in other.heard[0]
    assert answer.extensions["final_url"] == f"http://127.0.0.2:{other.port}/there"


def test_another_port_of_the_same_host_is_another_server():
    with listener(answer=http("200 OK")) as other:
        target = f"Location: http://127.0.0.1:{other.port}/"
        with (
            listener(answer=http("302 Found", target)) as there,
            make_client() as client,
        ):
            client.get(f"http://127.0.0.1:{there.port}/", headers=SECRETS)

    assert b"s3cret" not in other.heard[0]


def test_secrets_stay_on_a_redirect_within_the_server():
    turns = [http("307 Temporary", "Location: /two"), http("200 OK")]
    with (
        listener(answer=lambda sock: turns.pop(0)(sock)) as there,
        make_client() as client,
    ):
        url = f"http://127.0.0.1:{there.port}/one"
        client.post(url, headers=SECRETS, content=b"body")

    assert there.heard[1].startswith(b"POST /two")
    assert b"Bearer s3cret" in there.heard[1]
    assert there.heard[1].endswith(b"body")


def test_headers_may_have_any_letters():
    name = "Content-Disposition: attachment; filename=café.csv"
    turns = [http("302 Found", "Location: /café"), http("200 OK", name)]
    with (
        listener(answer=lambda sock: turns.pop(0)(sock)) as there,
        make_client() as client,
    ):
        answer = client.get(f"http://127.0.0.1:{there.port}/")

    assert there.heard[1].startswith(b"GET /caf%C3%A9 ")
    assert answer.headers["content-disposition"].endswith("café.csv")


def test_a_redirect_to_no_host_is_refused():
    with (
        listener(answer=http("302 Found", "Location: http://xn--0.pt/")) as there,
        make_client() as client,
        pytest.raises(ResponseRefused, match="not an address"),
    ):
        client.get(f"http://127.0.0.1:{there.port}/")


def test_a_body_is_not_forwarded_to_another_host():
    with listener("127.0.0.2", http("200 OK")) as other:
        target = f"Location: http://127.0.0.2:{other.port}/"
        with (
            listener(answer=http("307 Temporary", target)) as there,
            make_client() as client,
            pytest.raises(ResponseRefused, match="another"),
        ):
            client.post(f"http://127.0.0.1:{there.port}/", content=b"s3cret")

    assert other.knocks == 0


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other"])
def test_a_post_becomes_a_get_where_browsers_do_so(status):
    with listener("127.0.0.2", http("200 OK")) as other:
        target = f"Location: http://127.0.0.2:{other.port}/"
        with listener(answer=http(status, target)) as there, make_client() as client:
            client.post(f"http://127.0.0.1:{there.port}/", content=b"s3cret")

    assert other.heard[0].startswith(b"GET / ")
    assert b"s3cret" not in other.heard[0]
    assert b"content-length" not in other.heard[0].lower()


def bomb() -> bytes:
    """Return 64 MiB of nothing, packed."""
    return gzip.compress(b"\0" * 2**26)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ((), b"x" * 3000),
        (("Content-Encoding: gzip",), bomb()),
        (("Content-Encoding: deflate",), zlib.compress(b"x" * 3000)),
    ],
    ids=["long", "gzip bomb", "packed long"],
)
def test_an_answer_over_the_limit_is_refused(headers, body):
    with (
        listener(answer=http("200 OK", *headers, body=body)) as there,
        make_client(max_bytes=2000) as client,
        pytest.raises(ResponseTooLarge, match="larger than 2,000 bytes"),
    ):
        client.get(f"http://127.0.0.1:{there.port}/")


def raw_deflate(text: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(text) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b"hello " * 50)),
        ("x-gzip", gzip.compress(b"hello " * 25) + gzip.compress(b"hello " * 25)),
        ("deflate", zlib.compress(b"hello " * 50)),
        ("deflate", raw_deflate(b"hello " * 50)),
        ("identity", b"hello " * 50),
        ("gzip", gzip.compress(b"hello " * 50) + b"\0\0\0"),
    ],
    ids=["gzip", "two members", "zlib", "raw deflate", "identity", "padded"],
)
def test_packed_answers_are_unpacked(encoding, body):
    answer = http("200 OK", f"Content-Encoding: {encoding}", body=body)
    with listener(answer=answer) as there, make_client() as client:
        assert client.get(f"http://127.0.0.1:{there.port}/").text == "hello " * 50


@pytest.mark.parametrize(
    ("encoding", "sentence"),
    [("gzip", "cannot be unpacked"), ("br", "the encoding 'br'")],
)
def test_an_answer_that_cannot_be_unpacked_is_refused(encoding, sentence):
    answer = http("200 OK", f"Content-Encoding: {encoding}", body=b"\x1f\x8bnonsense!")
    with (
        listener(answer=answer) as there,
        make_client() as client,
        pytest.raises(ResponseRefused, match=sentence),
    ):
        client.get(f"http://127.0.0.1:{there.port}/")


def slowly(sock: socket.socket) -> None:
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(100):
        sock.sendall(b"x")
        time.sleep(0.1)


def never(sock: socket.socket) -> None:
    while sock.recv(65536):  # until the client closes the connection
        pass


@pytest.mark.parametrize("answer", [slowly, never], ids=["dripping", "silent"])
def test_a_deadline_ends_a_hanging_call(answer):
    with (
        listener(answer=answer) as there,
        make_client(deadline=Deadline(seconds=0.4), timeout=30.0) as client,
        pytest.raises(DeadlineExceeded),
    ):
        client.get(f"http://127.0.0.1:{there.port}/")


@pytest.mark.parametrize("answer", [slowly, never], ids=["dripping", "silent"])
def test_stop_ends_a_hanging_call(answer):
    flag = threading.Event()
    threading.Timer(0.2, flag.set).start()
    with (
        listener(answer=answer) as there,
        make_client(deadline=Deadline(seconds=30, flag=flag), timeout=30.0) as client,
        pytest.raises(CallCanceled),
    ):
        client.get(f"http://127.0.0.1:{there.port}/")


def test_a_server_that_sends_nothing_times_out():
    with (
        listener(answer=never) as there,
        make_client(timeout=0.3) as client,
        pytest.raises(httpx.ReadTimeout),
    ):
        client.get(f"http://127.0.0.1:{there.port}/")


def test_a_server_that_takes_nothing_is_given_up():
    is_over = threading.Event()

    def deaf(sock: socket.socket) -> None:
        is_over.wait(60)

    with listener(answer=deaf) as there, make_client(timeout=0.3) as client:
        there_url = f"http://127.0.0.1:{there.port}/"
        with pytest.raises((httpx.WriteTimeout, httpx.ReadTimeout)):
            client.post(there_url, content=b"x" * 2**26)
    is_over.set()


def test_a_hanging_name_server_does_not_outlive_the_deadline():
    answered = threading.Event()

    def hang(host: str, port: int) -> list[str]:
        answered.wait(10)
        return ["127.0.0.1"]

    with (
        make_client(deadline=Deadline(seconds=0.2), resolve=hang) as client,
        pytest.raises(DeadlineExceeded),
    ):
        client.get("http://slow.test/")
    answered.set()


def test_an_unknown_name_is_no_connection():
    def unknown(host: str, port: int) -> list[str]:
        raise OSError("Name or service not known")

    with make_client(resolve=unknown) as client, pytest.raises(httpx.ConnectError):
        client.get("http://nowhere.test/")


def test_the_next_address_is_tried_where_the_first_refuses():
    with (
        listener("127.0.0.2", http("200 OK")) as there,
        make_client(resolve=lambda *_: ["127.0.0.1", "127.0.0.2"]) as client,
    ):
        answer = client.get(f"http://two.test:{there.port}/")

    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("127.0.0.1", "does not begin with provider="),
        ("everyone=127.0.0.1", "does not begin with provider="),
        ("tool=::1,everyone=::1", "does not begin with provider="),
        ("tool=::1;10.0.0.5", "does not begin with provider="),
        ("tool=10.0.0.0/33", "is not a host, address or network"),
        ("tool=10.0.0.1/8", "is not a host, address or network"),
        ("tool=host:99999", "has no port between"),
        ("tool=host:0", "has no port between"),
        ("tool=a:b:c", "is not a host, address or network"),
        ("tool=http://host/", "is not a host, address or network"),
        ("tool=[host]:80", "is not a host, address or network"),
    ],
)
def test_a_list_that_cannot_be_read_is_refused_with_a_sentence(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        parse_private_hosts(text)


def test_a_list_is_read_by_use():
    found = parse_private_hosts(
        "provider=127.0.0.1,[::1]:11434, Ollama.lan:80; tool=10.0.0.0/8;tool=::1;mcp="
    )

    assert [one.port for one in found["provider"]] == [None, 11434, 80]
    assert found["provider"][2].name == "ollama.lan"
    assert len(found["tool"]) == 2
    assert found["mcp"] == ()
    assert parse_private_hosts("") == {}


def test_a_comma_may_stand_before_the_next_use():
    found = parse_private_hosts("provider=127.0.0.1,::1,webhook=127.0.0.1:9911")

    assert len(found["provider"]) == 2
    assert [one.port for one in found["webhook"]] == [9911]
