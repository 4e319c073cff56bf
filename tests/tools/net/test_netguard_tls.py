"""Tests of guarded TLS against a real handshake on loopback."""

import ssl
import threading
from pathlib import Path

import httpx
import pytest

from runs.llm.errors import ModelCallError
from tests.fakes.listener import http, listener
from tests.fakes.tls import make_certificate, tls_listener
from tests.llm.make import make_llm, make_request, soon
from tools.errors import CallCanceled, DeadlineExceeded
from tools.net.deadline import Deadline
from tools.net.netguard import (
    NetPolicy,
    guarded_client,
    open_client,
    parse_private_hosts,
)

POLICY = NetPolicy(private_hosts=parse_private_hosts("tool=127.0.0.1")["tool"])
BIG = b"x" * 2_000_000


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> Path:
    """Make one certificate for all."""
    return make_certificate(tmp_path_factory.mktemp("tls"))


def trusting(certificate: Path) -> ssl.SSLContext:
    """Return a context that trusts the certificate."""
    return ssl.create_default_context(cafile=str(certificate))


def test_reads_and_writes_over_tls(certificate):
    context = trusting(certificate)
    with (
        tls_listener(certificate, http("200 OK", body=BIG)) as there,
        guarded_client(POLICY, soon(), timeout=5, ssl_context=context) as client,
    ):
        answer = client.post(f"https://127.0.0.1:{there.port}/", content=b"s3cret")

    assert answer.content == BIG
    assert there.heard[0].endswith(b"s3cret")


def test_the_small_client_speaks_tls_too(certificate):
    with tls_listener(certificate, http("200 OK", body=BIG)) as there:
        client = open_client(POLICY, timeout=5, ssl_context=trusting(certificate))
        url = httpx.URL(f"https://127.0.0.1:{there.port}/")
        with client.exchange(url, b"", b"s3cret", deadline=soon()) as answer:
            assert b"".join(answer.chunks) == BIG
        client.close()


def never(sock) -> None:
    while sock.recv(65536):  # until the client closes the connection
        pass


def test_stop_ends_a_hanging_call_over_tls(certificate):
    flag = threading.Event()
    threading.Timer(0.2, flag.set).start()
    context, deadline = trusting(certificate), Deadline(seconds=30, flag=flag)
    with (
        tls_listener(certificate, never) as there,
        guarded_client(POLICY, deadline, timeout=30, ssl_context=context) as client,
        pytest.raises(CallCanceled),
    ):
        client.get(f"https://127.0.0.1:{there.port}/")


def test_a_handshake_that_hangs_ends_with_the_deadline():
    deadline = Deadline(seconds=0.3)
    with (
        listener(answer=never) as there,
        guarded_client(POLICY, deadline, timeout=30) as client,
        pytest.raises(DeadlineExceeded),
    ):
        client.get(f"https://127.0.0.1:{there.port}/")


def test_a_certificate_nobody_vouches_for_is_explained(certificate):
    with tls_listener(certificate, http("200 OK")) as there:
        llm = make_llm(f"https://127.0.0.1:{there.port}/v1")
        sentence = "The certificate of '127.0.0.1' is not valid"
        with pytest.raises(ModelCallError, match=sentence) as caught:
            llm.complete(make_request(), deadline=soon())

    assert caught.value.may_retry is False


def test_a_certificate_of_another_host_is_refused(tmp_path):
    certificate = make_certificate(tmp_path, host="127.0.0.9")
    with (
        tls_listener(certificate, http("200 OK")) as there,
        guarded_client(
            POLICY, soon(), timeout=5, ssl_context=trusting(certificate)
        ) as client,
        pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        client.get(f"https://127.0.0.1:{there.port}/")

    assert there.heard == []
