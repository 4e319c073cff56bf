"""Servers of the SDK that change their tools in the middle of a run."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from runs.models import Agent
from tests.fakes.model_server import FakeServer, model_server
from tests.make import make_agent, make_provider, make_user
from tests.mcp.rows import command_line, make_server, take_over
from tests.mcp.servers.http_server import mcp_server
from tests.worker.run_parts import call, executed
from tools.mcp_pin import McpPin
from tools.models import McpServer, Tool

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass(frozen=True)
class Changing:
    """A server whose tools change, and what has reached it."""

    server: McpServer
    sums: Callable[[], list[str]]

    def agent_on(self, model: FakeServer) -> Agent:
        """Make an agent that may add, and turn the server."""
        owner = self.server.owner
        tools = take_over(self.server, "add", "turn", approval="never")
        provider = make_provider(owner, base_url=model.base_url)
        return make_agent(owner, tools=tools, provider=provider)


@pytest.fixture(params=["http", "stdio"])
def changing(request, settings, tmp_path) -> Iterator[Changing]:
    """Give a server over each transport."""
    owner = make_user()
    if request.param == "http":
        with mcp_server(json=True) as running:
            settings.PRIVATE_HOSTS = f"{running.policy};provider=127.0.0.1"
            server = make_server(url=running.url, owner=owner)
            yield Changing(server, lambda: running.sums)
    else:
        sums = tmp_path / "sums"
        settings.PRIVATE_HOSTS = "provider=127.0.0.1"
        settings.MCP_COMMANDS = command_line(folder=str(tmp_path))
        yield Changing(make_server(owner=owner), partial(lines_of, sums))


def lines_of(path: Path) -> list[str]:
    """Return what was written so far."""
    return path.read_text().splitlines() if path.exists() else []


def test_a_changed_tool_is_switched_off_and_not_called(changing):
    script = [
        *(call("add", a=1, b=2), call("turn", how="rewrite")),
        *(call("add", a=3, b=4), call("add", a=5, b=6), "Done."),
    ]
    with model_server(script=script) as model:
        run = executed(changing.agent_on(model))

    assert (run.status, run.output) == ("succeeded", "Done.")
    first, _, changed, off = run.steps.order_by("index")
    assert (first.status, first.observation) == ("succeeded", "3")
    assert (changed.status, off.status) == ("failed", "failed")
    assert "changed the tool 'add'. It is disabled until" in changed.observation
    assert "disabled" in off.observation
    assert changing.sums() == ["1 + 2"]

    tool = Tool.objects.get(name="add")
    assert tool.enabled is False
    assert "evil.example" not in tool.description
    assert "evil.example" in McpPin.objects.get(tool=tool).offered["description"]
    assert all("evil.example" not in str(asked.body) for asked in model.requests)


def test_a_tool_that_was_taken_away_is_a_sentence(changing):
    script = [call("turn", how="take away"), call("add", a=1, b=2), "Done."]
    with model_server(script=script) as model:
        run = executed(changing.agent_on(model))

    assert run.status == "succeeded"
    assert "no longer offers the tool 'add'" in run.steps.last().observation
    assert changing.sums() == []
