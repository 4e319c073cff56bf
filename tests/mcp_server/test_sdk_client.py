"""The MCP endpoint as the official SDK's client sees it, in two revisions."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from django.contrib.auth.models import User
from django.test import Client as DjangoClient
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from runs.models import Agent, Decision, Run
from runs.services.accounts.tokens import create_token
from runs.services.approvals.answer import approve_step
from tests.fakes.model_server import FakeServer
from tests.openai.site import working
from tests.support.threads import in_thread
from tests.support.timing import wait_until
from tests.views.agents.test_code import example_of
from tests.worker.run_parts import agent_on, ask_before

PAGE = Path("docs/mcp-endpoint.md")
MODES = {"legacy": "2025-11-25", "auto": "2026-07-28"}
"""How the client negotiates, and the revision that it agrees on."""

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def agent(ann: User, model: FakeServer) -> Agent:
    """Make an agent that adds, and mails if somebody approves."""
    agent = agent_on(
        model,
        "add",
        "send_mail",
        owner=ann,
        slug="helper",
        description="Helps.",
        is_offered=True,
    )
    ask_before(agent, "send_mail")
    return agent


class Caller(NamedTuple):
    """A client with a token."""

    url: str
    token: str
    mode: str

    def do(self, work: Callable[[Client], Awaitable[Any]], path: str = "/mcp") -> Any:
        """Return what `work` returns with a connected client."""

        async def scene() -> Any:
            headers = {"Authorization": f"Bearer {self.token}"}
            async with (
                asyncio.timeout(60),
                httpx2.AsyncClient(headers=headers, timeout=60) as http,
                Client(
                    streamable_http_client(self.url + path, http_client=http),
                    mode=self.mode,
                ) as client,
            ):
                return await work(client)

        return asyncio.run(scene())


@pytest.fixture(params=MODES)
def caller(
    request: pytest.FixtureRequest, url: str, ann: User, agent: Agent
) -> Iterator[Caller]:
    with working():
        yield Caller(url, create_token(ann), request.param)


def test_offered_agents_are_tools(caller):
    async def work(client: Client) -> Any:
        return client.protocol_version, (await client.list_tools()).tools

    version, [tool] = caller.do(work)

    assert version == MODES[caller.mode]
    assert (tool.name, tool.description) == ("helper", "Helps.")
    assert tool.input_schema["required"] == ["input"]


def test_a_call_runs_the_agent_and_tells_its_progress(caller, ann):
    told = []

    async def work(client: Client) -> Any:
        async def on_progress(done: float, total: float | None, text: str) -> None:
            told.append((done, text))

        return await client.call_tool(
            "helper", {"input": "the sum"}, progress_callback=on_progress
        )

    result = caller.do(work)

    assert (result.is_error, result.content[0].text) == (False, "Result: 5.")
    assert told == [(1, 'add({"a": 2, "b": 3})'), (2, "→ 5")]
    assert Run.objects.get().owner == ann


@pytest.mark.slow
def test_a_call_waits_for_approval(caller, ann):
    told = []

    async def work(client: Client) -> Any:
        async def on_progress(done: float, total: float | None, text: str) -> None:
            told.append(text)
            if text.startswith("Waiting for approval of send_mail: "):
                await in_thread(approve)

        def approve() -> None:
            approve_step(Decision.objects.get(), by=ann)

        return await client.call_tool(
            "helper", {"input": "Send the mail"}, progress_callback=on_progress
        )

    assert caller.do(work).content[0].text == "Result: sent to ann@example.com."
    assert any(re.search(r"/approvals/\d+/", text) for text in told)


def test_canceling_a_call_cancels_its_run(caller, ann):
    async def work(client: Client) -> None:
        call = asyncio.create_task(client.call_tool("helper", {"input": "slow"}))
        await in_thread(
            lambda: wait_until(lambda: Run.objects.filter(status="running").exists())
        )
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await in_thread(
            lambda: wait_until(lambda: Run.objects.filter(status="canceled").exists())
        )

    caller.do(work)

    assert Run.objects.get().canceled_by == ann


def test_closing_the_connection_of_a_call_cancels_its_run_if_the_agent_wants_it(
    url, ann, agent
):
    """The second run is canceled later than the first one was left."""
    call = {"name": "helper", "arguments": {"input": "Send the mail"}}
    call["_meta"] = {"progressToken": 1}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {"Authorization": f"Bearer {create_token(ann)}"}
    headers["Accept"] = "application/json, text/event-stream"
    with working(), httpx2.Client(headers=headers, timeout=60) as http:
        for continues in (True, False):
            Agent.objects.update(continues_without_client=continues)
            with http.stream("POST", f"{url}/mcp", json=body) as answer:
                next(text for text in answer.iter_text() if "/approvals/" in text)
        wait_until(lambda: Run.objects.latest("pk").status == "canceled")

    assert Run.objects.earliest("pk").status == "awaiting_approval"


def test_a_failing_agent_is_an_error_that_a_model_can_read(caller):
    async def work(client: Client) -> Any:
        failed = await client.call_tool("helper", {"input": "fail"})
        wrong = await client.call_tool("helper", {"question": "Hi"})
        return failed, wrong

    failed, wrong = caller.do(work)

    assert (failed.is_error, wrong.is_error) == (True, True)
    assert "/runs/" in failed.content[0].text
    assert '"question"' in wrong.content[0].text
    assert Run.objects.count() == 1


def test_an_answer_by_a_schema_is_structured(caller, agent, model):
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}}
    Agent.objects.update(executor={"output_schema": schema})
    before, model.script = model.script, lambda request: '{"sum": 5}'

    async def work(client: Client) -> Any:
        [tool] = (await client.list_tools()).tools
        return tool, await client.call_tool("helper", {"input": "2 + 3"})

    try:
        tool, result = caller.do(work)
    finally:
        model.script = before

    assert tool.output_schema == schema
    assert result.structured_content == {"sum": 5}


def test_runs_are_looked_at_with_the_tools_to_inspect(caller):
    async def work(client: Client) -> Any:
        names = [tool.name for tool in (await client.list_tools()).tools]
        listed = (await client.call_tool("list_runs", {})).structured_content["runs"]
        run = {"run": listed[0]["run"]}
        told = await client.call_tool("explain_run", run)
        read = await client.call_tool("read_run", run)
        agents = await client.call_tool("list_agents", {})
        return names, told.structured_content, read, agents.structured_content

    async def fail(client: Client) -> Any:
        return await client.call_tool("helper", {"input": "fail"})

    caller.do(fail)
    names, told, read, agents = caller.do(work, "/mcp/inspect")

    assert names == ["list_agents", "list_runs", "read_run", "explain_run"]
    assert told["status"] == "failed"
    assert told["failed_model_attempts"][0]["code"] == told["error"]["code"]
    assert read.structured_content["inputs"] == {"input": "fail"}
    assert agents["agents"][0]["inputs"] == ["input"]


def test_the_example_of_the_documentation_works(url, ann, agent):
    agent.slug = "travel-planner"
    agent.save()
    example = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert example is not None
    with working():
        done = subprocess.run(
            [sys.executable, "-c", example[1].replace("http://localhost:8000", url)],
            env={"AGENTSITE_TOKEN": create_token(ann)},
            capture_output=True,
            text=True,
            timeout=60,
        )

    assert (done.stdout, done.stderr) == ("You said: A day in Lima\n", "")


def test_the_configuration_on_the_page_of_the_agent_works(url, ann, agent, settings):
    settings.PUBLIC_URL = url
    browser = DjangoClient()
    browser.force_login(ann)
    page = browser.get(f"/agents/{agent.pk}/code/?lang=mcp").content.decode()
    server = json.loads(example_of(page))["mcpServers"]["agentsite"]
    token = create_token(ann)
    sent = server["headers"]["Authorization"].replace("${AGENTSITE_TOKEN}", token)

    async def work(client: Client) -> Any:
        return [tool.name for tool in (await client.list_tools()).tools]

    caller = Caller("", sent.removeprefix("Bearer "), "auto")
    assert caller.do(work, server["url"]) == ["helper"]


def test_the_configuration_of_the_documentation_is_json():
    [config] = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)

    assert json.loads(config)["mcpServers"]["agentsite"]["url"].endswith("/mcp")
