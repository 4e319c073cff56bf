"""The SDK's server over streamable HTTP, through the guard."""

import threading
from functools import partial

import pytest

from tests.mcp.servers.http_server import mcp_server
from tools.errors import CallCanceled, DeadlineExceeded, ToolFailed
from tools.mcp.http import HttpLink
from tools.mcp.session import Session, open_mcp_session
from tools.mcp.wire import STATELESS_VERSION
from tools.net.deadline import Deadline
from tools.net.netguard import NetPolicy, parse_private_hosts

MINUTE = partial(Deadline, seconds=60)


def link_to(running, *, policy=None):
    allowed = parse_private_hosts(running.policy if policy is None else policy)
    return HttpLink(
        running.url,
        policy=NetPolicy(use="mcp", private_hosts=allowed.get("mcp", ())),
    )


@pytest.mark.parametrize(
    "habits",
    [{}, {"json": True}, {"stateless": True}],
    ids=["an event stream", "JSON", "without sessions"],
)
def test_finds_and_calls_the_tools_of_a_server(habits):
    with (
        mcp_server(**habits) as running,
        open_mcp_session(link_to(running), MINUTE()) as session,
    ):
        offers = {offer.name: offer for offer in session.tools(MINUTE())}
        value = session.call("add", {"a": 1, "b": 2}, MINUTE())

    assert value == "3"
    assert offers["add"].description == "Return the sum."
    assert offers["add"].hint == "Read-only"


def test_says_session_and_revision_in_each_request_and_goodbye_at_the_end():
    with mcp_server() as running:
        with open_mcp_session(link_to(running), MINUTE()) as session:
            session.tools(MINUTE())

        first, *others = running.heads
    assert "mcp-session-id" not in first
    assert {head["mcp-protocol-version"] for head in others} == {"2025-11-25"}
    assert len({head["mcp-session-id"] for head in others}) == 1
    assert others[-1]["method"] == "DELETE"


def test_speaks_the_revision_without_a_handshake():
    with mcp_server() as running:
        link = link_to(running)
        link.version = STATELESS_VERSION
        session = Session(link)

        assert "add" in [offer.name for offer in session.tools(MINUTE())]
        assert session.call("add", {"a": 3, "b": 4}, MINUTE()) == "7"
        assert running.heads[-1]["mcp-name"] == "add"
        link.close()


def test_an_address_that_nobody_allowed_is_not_asked():
    with mcp_server() as running:
        link = link_to(running, policy="")

        with pytest.raises(ToolFailed, match="AGENTSITE_PRIVATE_HOSTS=mcp=127"):
            Session(link).begin(MINUTE())

        assert running.heads == []
        link.abandon()


def test_what_is_allowed_for_tools_is_not_for_mcp():
    with mcp_server() as running:
        link = link_to(running, policy=f"tool=127.0.0.1:{running.port}")

        with pytest.raises(ToolFailed, match="not allowed"):
            Session(link).begin(MINUTE())
        link.abandon()


@pytest.mark.slow
def test_a_call_that_hangs_ends_at_its_deadline():
    with (
        mcp_server() as running,
        pytest.raises(DeadlineExceeded),
        open_mcp_session(link_to(running), MINUTE()) as session,
    ):
        session.call("hang", {}, Deadline(seconds=2))


@pytest.mark.slow
def test_stop_ends_a_call_that_hangs():
    flag = threading.Event()
    threading.Timer(0.5, flag.set).start()

    with (
        mcp_server() as running,
        pytest.raises(CallCanceled),
        open_mcp_session(link_to(running), MINUTE()) as session,
    ):
        session.call("hang", {}, Deadline(seconds=60, flag=flag))


def test_ten_megabytes_are_not_taken_in():
    with (
        mcp_server() as running,
        pytest.raises(ToolFailed, match="larger than 10,485,760 bytes"),
        open_mcp_session(link_to(running), MINUTE()) as session,
    ):
        session.call("large", {"megabytes": 10}, MINUTE())


def test_what_a_tool_says_of_its_failure_is_the_sentence():
    with (
        mcp_server() as running,
        pytest.raises(ToolFailed, match="no such order"),
        open_mcp_session(link_to(running), MINUTE()) as session,
    ):
        session.call("fail", {"why": "no such order"}, MINUTE())


def test_a_server_that_ends_in_the_middle_is_a_sentence():
    with mcp_server() as running:
        link = link_to(running)
        session = Session(link)
        session.begin(MINUTE())

    with pytest.raises(ToolFailed, match="is gone"):
        session.tools(MINUTE())
    link.abandon()
