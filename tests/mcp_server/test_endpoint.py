"""Requests to the MCP endpoint: who may what, and what is refused."""

import json
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from runs.mcp_server.rpc import ENVELOPE, HEADER_MISMATCH
from runs.models import Agent, Run
from runs.services.accounts.tokens import create_token
from tests.make import make_agent, make_run, make_user
from tools.mcp.wire import STATELESS_VERSION, UNSUPPORTED_VERSION

pytestmark = pytest.mark.django_db


class Caller:
    """A program with a token."""

    def __init__(self, user: Any, **token: Any) -> None:
        self.headers = {"Authorization": f"Bearer {create_token(user, **token)}"}
        self.client = Client(raise_request_exception=False, enforce_csrf_checks=True)

    def send(self, body: Any, path: str = "/mcp", **headers: str) -> HttpResponse:
        return self.client.generic(
            "POST",
            path,
            body if isinstance(body, bytes) else json.dumps(body),
            content_type="application/json",
            headers={**self.headers, **headers},
        )

    def ask(self, method: str, path: str = "/mcp", **params: Any) -> HttpResponse:
        return self.send(request(method, **params), path)

    def call(self, name: str, path: str = "/mcp", **arguments: Any) -> Any:
        answer = self.ask("tools/call", path, name=name, arguments=arguments)
        return answer.json()

    def inspect(self, name: str, **arguments: Any) -> Any:
        return self.call(name, "/mcp/inspect", **arguments)["result"]


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@pytest.fixture
def ann():
    return make_user("ann")


@pytest.fixture
def agent(ann):
    return make_agent(ann, slug="helper", is_offered=True)


@pytest.fixture
def caller(ann, agent):
    return Caller(ann)


def test_only_agents_that_are_offered_and_may_be_run_are_tools(caller, ann):
    make_agent(ann, slug="own")
    make_agent(slug="foreign", is_offered=True)
    make_agent(slug="public", is_offered=True, visibility="everyone")
    make_agent(ann, slug="old", is_offered=True, archived_at=timezone.now())

    tools = caller.ask("tools/list").json()["result"]["tools"]

    assert [tool["name"] for tool in tools] == ["helper", "public"]


@pytest.mark.parametrize("name", ["own", "foreign", "old", "nobody", "help", "a\0"])
def test_other_agents_are_unknown_tools(caller, ann, name):
    make_agent(ann, slug="own")
    make_agent(slug="foreign", is_offered=True)
    make_agent(ann, slug="old", is_offered=True, archived_at=timezone.now())

    error = caller.call(name, input="Hi")["error"]

    assert error["message"] == f"Unknown tool: {name}"
    assert not Run.objects.exists()


def test_an_agent_is_not_offered_by_default(ann):
    assert not Agent(owner=ann).is_offered


@pytest.mark.parametrize(
    ("scopes", "listed", "called"),
    [(["read"], 200, 403), (["run"], 403, 403), (["run", "read"], 200, 200)],
)
def test_a_token_may_what_its_scopes_allow(ann, agent, scopes, listed, called):
    caller = Caller(ann, scopes=scopes)
    call = {"name": "helper", "arguments": {"input": "Hi"}}

    assert caller.ask("tools/list").status_code == listed
    assert caller.ask("tools/call", **call).status_code == called
    assert Run.objects.exists() == (called == 200)


@pytest.mark.parametrize("path", ["/mcp", "/mcp/inspect"])
def test_a_session_is_not_a_token(caller, ann, path):
    caller.client.force_login(ann)
    caller.headers = {}
    refused = caller.ask("tools/list", path)

    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"].startswith("Bearer")


def test_pages_of_other_sites_are_refused(caller):
    body = request("tools/list")

    assert caller.send(body, Origin="https://evil.example").status_code == 403
    assert caller.send(body, Origin="http://testserver").status_code == 200


def test_only_posts_are_answered(caller):
    for method in ("GET", "DELETE"):
        answer = caller.client.generic(method, "/mcp", headers=caller.headers)
        assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b'{"id": 1, "id": 2, "method": "ping"}', -32700),
        (b'{"id": 1, "method": "ping", "params": {"name": "a", "name": "b"}}', -32700),
        (b'{"id": 1, "method": "ping", "params": {"number": NaN}}', -32700),
        (b'{"id": 1, "method": "ping", "params": {"number": 1e999}}', -32700),
        ([request("ping")], -32600),
        ({"id": 1}, -32600),
        ({"id": {}, "method": "ping"}, -32600),
        ({"id": 1, "method": "ping", "params": []}, -32600),
    ],
)
def test_what_is_no_request_is_refused(caller, body, code):
    answer = caller.send(body)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


def test_an_unknown_method_is_an_error(caller):
    assert caller.ask("prompts/list").json()["error"]["code"] == -32601


def test_a_revision_that_nobody_speaks_is_refused_with_those_that_are(caller):
    answer = caller.send(request("tools/list"), **{"MCP-Protocol-Version": "2030"})
    error = answer.json()["error"]

    assert error["code"] == UNSUPPORTED_VERSION
    assert STATELESS_VERSION in error["data"]["supported"]


@pytest.mark.parametrize("header", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
def test_headers_must_say_what_the_body_says(caller, header):
    headers = {
        "MCP-Protocol-Version": STATELESS_VERSION,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "helper",
    }
    meta = {
        f"{ENVELOPE}protocolVersion": STATELESS_VERSION,
        f"{ENVELOPE}clientCapabilities": {},
    }
    body = request("tools/call", name="helper", arguments={"input": "Hi"}, _meta=meta)
    del headers[header]

    answer = caller.send(body, **headers)

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == HEADER_MISMATCH
    assert not Run.objects.exists()


def test_a_call_that_is_sent_again_in_its_session_starts_one_run(caller):
    body = request("tools/call", name="helper", arguments={"input": "Hi"})
    for session in ("a1", "a1", "b2"):
        assert caller.send(body, **{"Mcp-Session-Id": session}).status_code == 200

    assert Run.objects.count() == 2


def test_a_canceled_call_cancels_the_run_of_its_own_session_and_user(caller):
    body = request("tools/call", name="helper", arguments={"input": "Hi"})
    caller.send(body, **{"Mcp-Session-Id": "a1"})
    note = {"method": "notifications/cancelled", "params": {"requestId": 1}}
    stranger = Caller(make_user())

    for who, session in ((caller, "b2"), (stranger, "a1"), (caller, "")):
        assert who.send(note, **{"Mcp-Session-Id": session}).status_code == 202
    assert Run.objects.get().status == "queued"
    caller.send(note, **{"Mcp-Session-Id": "a1"})
    assert Run.objects.get().status == "canceled"


def test_too_many_runs_are_an_error_that_a_model_can_read(caller, ann, settings):
    settings.USER_RUNS = 1
    make_run(ann)

    result = caller.call("helper", input="Hi")["result"]

    assert result["isError"]
    assert "unfinished run" in result["content"][0]["text"]


def test_inspecting_shows_what_the_user_may_see(caller, ann):
    own = make_run(ann, status="failed")
    foreign = make_run(status="failed")

    runs = caller.inspect("list_runs")["structuredContent"]["runs"]

    assert [run["run"] for run in runs] == [own.pk]
    for name in ("read_run", "explain_run"):
        result = caller.inspect(name, run=foreign.pk)
        assert result["content"][0]["text"] == f"Run {foreign.pk} not found."
        assert not caller.inspect(name, run=own.pk)["isError"]


def test_lists_of_runs_are_filtered_and_paged(caller, ann, agent):
    runs = [make_run(ann, agent=agent, status="succeeded") for _ in range(3)]
    make_run(ann, status="queued")

    page = caller.inspect(
        "list_runs", agent="helper", status="succeeded", before=runs[2].pk, limit=1
    )

    [run] = page["structuredContent"]["runs"]
    assert run["run"] == runs[1].pk


def test_wrong_arguments_are_an_error_that_a_model_can_read(caller):
    result = caller.inspect("list_runs", status="lost", colour="red")

    assert result["isError"]
    assert "colour" in result["content"][0]["text"]
