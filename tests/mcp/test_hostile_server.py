"""Servers that answer what the protocol does not know; none of it is an exception."""

import json
import time
from functools import partial

import pytest

from tests.fakes.listener import listener
from tests.tools.http_server import Answer, serve
from tools.credentials import OpenCredential
from tools.errors import DeadlineExceeded, ToolFailed
from tools.mcp.errors import ServerRefused, SessionExpired
from tools.mcp.http import HttpLink
from tools.mcp.session import Session, open_mcp_session
from tools.net.deadline import Deadline
from tools.net.netguard import NetPolicy, parse_private_hosts

MINUTE = partial(Deadline, seconds=60)
LOOPBACK = NetPolicy(
    use="mcp", private_hosts=parse_private_hosts("mcp=127.0.0.0/8")["mcp"]
)


def link_to(url, *, credential=None):
    return HttpLink(url, policy=LOOPBACK, credential=credential)


def reply(got, **message):
    return Answer({"jsonrpc": "2.0", "id": got.json().get("id"), **message})


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {}}
STREAM = "text/event-stream"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(b"<html>", content_type="text/html"), "something that is not JSON"),
        (Answer(b""), "answered 200 with nothing"),
        (Answer(b"", status=202), "answered 202 with nothing"),
        (Answer(b"Go away", status=403), "does not allow this: .*Go away"),
        (Answer(b"", status=500), r"answered 500\."),
        (
            Answer(b"Go", status=500, content_type="text/plain; charset=hex"),
            "answered 500: Go",
        ),
        (Answer(b"[" * 100_000), "not JSON"),
        (Answer([]), "before it had answered"),
        (Answer({"id": 99, "result": {}}), "before it had answered"),
        (Answer({"id": 1, "result": []}), "no result"),
        (Answer({"id": 1, "error": {"code": -1, "message": "x\ny" * 999}}), "x yx y"),
        (Answer({"id": 1, "error": {"code": "?"}}, status=400), "error without words"),
        (Answer({"id": 1, "result": {"protocolVersion": "1999"}}), "revision '1999'"),
        (Answer(b"data: x\n\n", content_type=STREAM), "not JSON"),
        (Answer(b": ping\n\n" * 10, content_type=STREAM), "before it had answered"),
        (Answer(b"data: {}\n\n" * 10, content_type=STREAM), "before it had answered"),
        (Answer(b"data: " + b"x" * (11 << 20), content_type=STREAM), "larger than"),
        (
            Answer(b"", status=307, headers={"Location": "http://127.0.0.2:9/"}),
            "redirects a request with its content",
        ),
        (
            Answer(b"", status=307, headers={"Location": "file:///etc/passwd"}),
            "not an http or https|redirects",
        ),
    ],
)
def test_whatever_a_server_answers_is_a_sentence(answer, why):
    with (
        serve(lambda got: answer) as server,
        pytest.raises(ToolFailed, match=why),
        open_mcp_session(link_to(server.url), MINUTE()),
    ):
        pass


@pytest.mark.parametrize(
    ("status", "signed_in", "why"),
    [
        (401, False, "needs sign-in. An administrator .* It says: No token"),
        (401, True, "needs sign-in: it did not accept the token or credential"),
        (403, True, "does not allow this: the account or token lacks a permission"),
    ],
)
def test_a_server_that_wants_a_sign_in_is_said_to(status, signed_in, why):
    body = {"error": "invalid_token", "error_description": "No token"}

    with serve(lambda got: Answer(body, status=status)) as server:
        secret = OpenCredential("bearer", "", (server.url,), "s3cret")
        link = link_to(server.url, credential=secret if signed_in else None)
        with pytest.raises(ToolFailed, match=why), open_mcp_session(link, MINUTE()):
            pass


def test_the_old_transport_is_refused_by_its_name():
    def answer(got):
        if got.method != "GET":
            return Answer(b"Method Not Allowed", status=405)
        return Answer(
            b"event: endpoint\ndata: /messages/?id=1\n\n", content_type=STREAM
        )

    with (
        serve(answer) as server,
        pytest.raises(ToolFailed, match=r"old transport HTTP\+SSE"),
        open_mcp_session(link_to(f"{server.url}/sse"), MINUTE()),
    ):
        pass


@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_on_the_same_host_is_followed(status):
    def answer(got):
        if got.path == "/mcp":
            return Answer(b"", status=status, headers={"Location": "/mcp/"})
        is_hello = got.json().get("method") == "initialize"
        return reply(got, result=HELLO if is_hello else {"tools": []})

    with (
        serve(answer) as server,
        open_mcp_session(link_to(f"{server.url}/mcp"), MINUTE()) as session,
    ):
        assert session.tools(MINUTE()) == []

    assert {got.path for got in server.got} == {"/mcp", "/mcp/"}


@pytest.mark.slow
def test_an_endless_stream_ends_with_the_call():
    def drip(taken):
        taken.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: one\n\n"
        )
        while True:
            taken.sendall(b": still here\n\n")
            time.sleep(0.05)

    with (
        listener(answer=drip) as found,
        pytest.raises(DeadlineExceeded),
        open_mcp_session(
            link_to(f"http://127.0.0.1:{found.port}/"), Deadline(seconds=1)
        ),
    ):
        pass


@pytest.mark.parametrize(
    "listed",
    [
        5,
        [5],
        [{}],
        [{"name": "x"}],
        [{"name": 5, "inputSchema": {}}],
        [{"name": "x", "inputSchema": []}],
        [{"name": "x", "inputSchema": {}, "annotations": 5}],
    ],
)
def test_a_list_of_tools_that_is_none_is_a_sentence(listed):
    def answer(got):
        is_hello = got.json()["method"] == "initialize"
        return reply(got, result=HELLO if is_hello else {"tools": listed})

    with (
        serve(answer) as server,
        pytest.raises(ToolFailed, match="does not speak MCP"),
        open_mcp_session(link_to(server.url), MINUTE()) as session,
    ):
        session.tools(MINUTE())


def test_pages_without_end_are_cut():
    def answer(got):
        if got.json()["method"] == "initialize":
            return reply(got, result=HELLO)
        tools = [{"name": "x", "inputSchema": {}}] * 20
        return reply(got, result={"tools": tools, "nextCursor": "on"})

    with (
        serve(answer) as server,
        open_mcp_session(link_to(server.url), MINUTE()) as session,
    ):
        assert len(session.tools(MINUTE())) == 500


def test_a_server_that_only_knows_the_newest_revision_is_understood():
    def answer(got):
        if got.json()["method"] == "initialize":
            error = {
                **{"code": -32022, "message": "Unsupported"},
                "data": {"supported": ["2026-07-28"], "requested": "2025-11-25"},
            }
            return Answer({"jsonrpc": "2.0", "id": 1, "error": error}, status=400)
        return reply(got, result={"tools": []})

    with (
        serve(answer) as server,
        open_mcp_session(link_to(server.url), MINUTE()) as session,
    ):
        assert session.tools(MINUTE()) == []
        assert server.got[-1].headers["mcp-method"] == "tools/list"


@pytest.mark.parametrize(
    ("status", "text", "error"),
    [
        (404, b"Not Found", SessionExpired),
        (400, b"Bad Request: No valid session ID provided", SessionExpired),
        (400, b"Bad Request", ServerRefused),
    ],
)
def test_a_server_that_no_longer_knows_a_session_says_404_or_names_it(
    status, text, error
):
    def answer(got):
        if got.method == "DELETE" or "id" not in got.json():
            return Answer(b"", status=202)
        if got.json()["method"] == "initialize":
            known = Answer({"id": got.json()["id"], "result": HELLO})
            known.headers["Mcp-Session-Id"] = "7"
            return known
        return Answer(text, status=status, content_type="text/plain")

    with (
        serve(answer) as server,
        pytest.raises(error),
        open_mcp_session(link_to(server.url), MINUTE()) as session,
    ):
        session.tools(MINUTE())


def test_a_question_of_the_server_is_answered_in_the_middle_of_a_call():
    ping = json.dumps({"jsonrpc": "2.0", "id": "p", "method": "ping"})
    ask = json.dumps({"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage"})

    def answer(got):
        asked = got.json()
        if asked.get("method") == "initialize":
            return reply(got, result=HELLO)
        if "method" not in asked or "id" not in asked:
            return Answer(b"", status=202)
        done = json.dumps({"id": asked["id"], "result": {"tools": []}})
        body = f"data: {ping}\n\ndata: {ask}\n\nevent: message\ndata: {done}\n\n"
        return Answer(body.encode(), content_type=STREAM)

    with (
        serve(answer) as server,
        open_mcp_session(link_to(server.url), MINUTE()) as session,
    ):
        session.tools(MINUTE())

    message = {one["id"]: one for got in server.got if "id" in (one := got.json())}
    assert message["p"]["result"] == {}
    assert message["q"]["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (
            {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            "a\nb",
        ),
        ({"content": [], "structuredContent": {"sum": 3}}, {"sum": 3}),
        ({"structuredContent": [1]}, [1]),
        ({"content": 5}, ""),
        ({"content": [5, None, {}]}, "[None, 0 bytes, not shown]"),
        (
            {"content": [{"type": "image", "mimeType": "image/x", "data": "QUJD"}]},
            "[image/x, 3 bytes, not shown]",
        ),
        ({"content": [{"type": "resource", "resource": {"text": "t"}}]}, "t"),
        (
            {"content": [{"type": "resource_link", "name": "n", "uri": "u:x"}]},
            "[n: u:x]",
        ),
    ],
)
def test_a_result_becomes_what_a_model_can_read(result, value):
    def answer(got):
        is_hello = got.json()["method"] == "initialize"
        return reply(got, result=HELLO if is_hello else result)

    with (
        serve(answer) as server,
        open_mcp_session(link_to(server.url), MINUTE()) as session,
    ):
        assert session.call("x", {}, MINUTE()) == value


def test_a_credential_is_not_sent_to_where_a_server_redirects():
    with (
        listener("127.0.0.2") as other,
        serve(
            lambda got: Answer(
                b"", status=303, headers={"Location": f"http://127.0.0.2:{other.port}/"}
            )
        ) as server,
    ):
        secret = OpenCredential("bearer", "", (server.url,), "s3cret")
        link = link_to(server.url, credential=secret)
        with pytest.raises((ToolFailed, DeadlineExceeded)):
            Session(link).begin(Deadline(seconds=2))
        link.abandon()

    assert server.got[0].headers["authorization"] == "Bearer s3cret"
    assert b"s3cret" not in b"".join(other.heard)


def test_a_credential_is_not_sent_to_a_host_it_is_not_bound_to():
    secret = OpenCredential("bearer", "", ("mcp.example.com",), "s3cret")

    with pytest.raises(ToolFailed, match="not bound to the host 'http://127.0.0.1:9'"):
        link_to("http://127.0.0.1:9/", credential=secret)
