"""A program's whole way: agent file, run, stream, answer; nothing but processes."""

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.fakes.model_server import FakeServer, model_server
from tests.faults.functions import LEDGER
from tests.faults.site import ROOT, Site, environment, start
from tests.support.timing import wait_until

pytestmark = pytest.mark.faults

LOOK = {"id": "c1", "name": "look", "arguments": '{"what": "it"}'}
IN_WORDS = 'Thought: I look.\nAction: look\nAction Input: {"what": "it"}\n'
SCRIPTS = {
    "tool-calling": [{"content": "I look.", "tool_calls": [LOOK]}, "It is there."],
    "react": [IN_WORDS, "Thought: I know.\nFinal Answer: It is there."],
}


class Program(NamedTuple):
    """A program with a token, the site it talks to and the model behind it."""

    site: Site
    server: FakeServer
    token: str

    def ask(self, method: str, path: str, body: Any = None, **more: str) -> Any:
        """Return status and JSON of one request."""
        with self.open(method, path, body, **more) as answer:
            return answer.status, json.loads(answer.read())

    @contextmanager
    def open(
        self, method: str, path: str, body: Any = None, **more: str
    ) -> Iterator[http.client.HTTPResponse]:
        """Send one request; its connection ends with the block."""
        headers = {"Authorization": f"Bearer {self.token}"}
        headers |= {name.replace("_", "-"): value for name, value in more.items()}
        raw = None if body is None else json.dumps(body)
        server = http.client.HTTPConnection("127.0.0.1", self.site.port, timeout=120)
        with closing(server):
            server.request(method, f"/api/v1/runs{path}", raw, headers)
            with server.getresponse() as answer:
                yield answer

    def events(self, run: int) -> list[tuple[str, Any]]:
        """Follow the run's stream to its `end`; return names and data."""
        name, found = "", []
        with self.open("GET", f"/{run}/events") as stream:
            assert stream.headers["Content-Type"].startswith("text/event-stream")
            for line in stream:
                field, _, value = line.decode().rstrip("\r\n").partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    found.append((name, json.loads(value)))
                if not line.strip() and name == "end":
                    break
        return found


def manage(site: Site, variables: dict[str, str], *words: str) -> str:
    """Run a command of `manage.py` beside the site; return its last line."""
    done = subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env=environment(site.data) | variables,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout.strip().splitlines()[-1]


def agentfile(url: str) -> str:
    """Return a file with an agent of each kind, with and without streaming."""
    providers = [
        {"slug": slug, "kind": "openai", "base_url": url, "stream": slug == "streamed"}
        for slug in ("streamed", "whole")
    ]
    config = {"function": "tests.faults.functions:look"}
    agents = [
        {
            "slug": f"{kind}-{provider['slug']}",
            "kind": kind,
            "provider": provider["slug"],
            "model": "fake-large",
            "tools": ["look"],
        }
        for kind in SCRIPTS
        for provider in providers
    ]
    tools = [{"slug": "look", "kind": "function", "config": config}]
    shape = {"agentfile": 1, "providers": providers, "tools": tools, "agents": agents}
    return json.dumps(shape)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """Start a site as `make run` does, and give it the agent file."""
    folder = tmp_path_factory.mktemp("end-to-end")
    variables = {
        "AGENTSITE_TOOL_MODULES": "tests.faults.functions",
        LEDGER: str(folder / "ledger"),
    }
    with model_server(script=[]) as server:
        site = start(folder / "data", **variables)
        try:
            site.wait_for("Agentsite is running at")
            path = Path(folder, "agents.json")
            path.write_text(agentfile(server.base_url))
            manage(site, variables, "import_agentfile", str(path))
            token = manage(site, variables, "create_token", "admin")
            yield Program(site, server, token)
        finally:
            site.end()


@pytest.mark.parametrize("provider", ["streamed", "whole"])
@pytest.mark.parametrize("kind", SCRIPTS)
def test_a_run_is_started_followed_and_read(program, kind, provider):
    program.server.script = list(SCRIPTS[kind])
    body = {"agent": f"{kind}-{provider}", "inputs": {"input": "Is it there?"}}
    key = f"{kind} {provider}"

    status, run = program.ask("POST", "", body, Idempotency_Key=key)
    again = program.ask("POST", "", body, Idempotency_Key=key)
    events = program.events(run["id"])
    _, ended = program.ask("GET", f"/{run['id']}")

    assert (status, again[0], again[1]["id"]) == (201, 200, run["id"])
    assert (ended["status"], ended["output"]) == ("succeeded", "It is there.")
    assert [(s["tool"], s["observation"]) for s in ended["steps"]] == [
        ("look", "seen it")
    ]
    last = {name: data for name, data in events if name != "draft"}
    assert list(last)[-1] == "end"
    assert last["step"] == ended["steps"][0]
    assert last["run"] == {k: ended[k] for k in last["run"]}
    sent = program.server.requests[-1].body
    assert bool(sent.get("stream")) == (provider == "streamed")
    assert ("tools" in sent) == (kind == "tool-calling")


def test_another_body_under_the_same_key_is_refused(program):
    program.server.script = ["Final Answer: Hello."]
    body = {"agent": "react-whole", "inputs": {"input": "Hello?"}}

    _, run = program.ask("POST", "", body, Idempotency_Key="once")
    assert program.events(run["id"])[-1][0] == "end"
    other = {**body, "inputs": {"input": "Bye?"}}

    assert program.ask("POST", "", other, Idempotency_Key="once")[0] == 409


def test_a_run_is_canceled_in_the_middle_of_a_model_call(program):
    program.server.script = [{"content": "Late.", "seconds": 60}]
    body = {"agent": "tool-calling-streamed", "inputs": {"input": "Wait."}}
    before = len(program.server.requests)
    _, run = program.ask("POST", "", body)
    wait_until(lambda: len(program.server.requests) > before)

    status, _ = program.ask("POST", f"/{run['id']}/cancel")
    events = program.events(run["id"])

    assert status == 200
    assert events[-1][0] == "end"
    assert program.ask("GET", f"/{run['id']}")[1]["status"] == "canceled"
