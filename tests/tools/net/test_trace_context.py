"""Trace context: which headers are accepted, and when calls carry one."""

import httpx
import pytest

from tests.tools.http_server import Answer, loopback, serve
from tools.net.deadline import Deadline
from tools.net.http_exchange import Request, send_request
from tools.net.netguard import open_client
from tools.net.trace_context import (
    get_incoming_traceparent,
    parse_traceparent,
    receive_traceparent,
    send_traceparent,
)

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GOOD = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("header", "parsed"),
    [
        pytest.param(GOOD, GOOD, id="valid"),
        pytest.param(f" {GOOD} ", GOOD, id="spaces"),
        pytest.param(f"00-{TRACE}-{SPAN}-00", f"00-{TRACE}-{SPAN}-00", id="unsampled"),
        pytest.param(f"00-{TRACE}-{SPAN}-03", GOOD, id="other-flags"),
        pytest.param(f"cc-{TRACE}-{SPAN}-01-more", GOOD, id="later-version"),
        pytest.param(f"ff-{TRACE}-{SPAN}-01", "", id="version-ff"),
        pytest.param(f"{GOOD}-more", "", id="too-long"),
        pytest.param(f"00-{'0' * 32}-{SPAN}-01", "", id="no-trace"),
        pytest.param(f"00-{TRACE}-{'0' * 16}-01", "", id="no-span"),
        pytest.param(GOOD.upper(), "", id="upper-case"),
        pytest.param(f"{GOOD}\r\nX-A: b", "", id="line-break"),
        pytest.param("", "", id="empty"),
    ],
)
def test_only_valid_headers_are_accepted(header, parsed):
    assert parse_traceparent(header) == parsed


def test_a_request_is_in_the_trace_of_its_caller_only_meanwhile():
    with receive_traceparent(GOOD):
        assert get_incoming_traceparent() == GOOD
    assert get_incoming_traceparent() == ""


def test_calls_of_both_clients_carry_the_header_only_inside():
    with serve(lambda _: Answer()) as server:
        client = open_client(loopback(), timeout=5)

        def call(**headers: str) -> None:
            url = httpx.URL(server.url)
            with client.exchange(url, b"", b"", deadline=Deadline(seconds=5)):
                pass
            asked = Request(server.url, headers=headers)
            send_request(asked, policy=loopback(), deadline=Deadline(seconds=5))

        call()
        with send_traceparent(GOOD):
            call()
            call(Traceparent="own")
        client.close()

    sent = [one.headers.get("traceparent") for one in server.got]
    assert sent == [None, None, GOOD, GOOD, GOOD, "own"]
