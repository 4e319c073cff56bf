"""Sessions that last as long as a run, with real servers over both transports."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from runs.models import Run
from runs.services.approvals.answer import approve_step
from tests.fakes.model_server import model_server
from tests.make import make_agent, make_provider, make_user
from tests.mcp.rows import (
    SMALL_SERVER,
    command_line,
    make_server,
    small_command,
    take_over,
)
from tests.mcp.servers.http_server import mcp_server
from tests.mcp.test_stdio import is_gone
from tests.worker.run_parts import call, calls, executed, go_on
from tools.definition.freeze import freeze_tool
from tools.errors import ToolFailed, ToolTimedOut
from tools.kinds.registry import call_tool
from tools.mcp_servers.sessions import McpSessions
from tools.models import McpServer, Tool
from tools.net.deadline import Deadline

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass(frozen=True)
class Reached:
    """A stored server over one transport."""

    server: McpServer
    begun: Callable[[], int]
    """How many sessions it has begun since its tools were imported."""
    ended: Callable[[], int]

    def take(self, *names: str, **more: object) -> list[Tool]:
        return take_over(self.server, *names, **{"approval": "never", **more})

    def executed(self, *script: object, tools: list[Tool]) -> Run:
        """Return a run that has ended, on a model that says the script."""
        with model_server(script=[*script, "Done."]) as model:
            owner = self.server.owner
            provider = make_provider(owner, base_url=model.base_url)
            return executed(make_agent(owner, tools=tools, provider=provider))


@pytest.fixture(params=["http", "stdio"])
def reached(request, settings, tmp_path) -> Iterator[Reached]:
    """Give a server over each transport."""
    owner = make_user()
    if request.param == "http":
        with mcp_server() as running:
            settings.PRIVATE_HOSTS = f"{running.policy};provider=127.0.0.1"
            server = make_server(url=running.url, owner=owner)
            yield Reached(
                server,
                lambda: len({h.get("mcp-session-id") for h in running.heads} - {None}),
                lambda: sum(h["method"] == "DELETE" for h in running.heads),
            )
    else:
        settings.PRIVATE_HOSTS = "provider=127.0.0.1"
        settings.MCP_COMMANDS = command_line(folder=str(tmp_path))
        yield Reached(
            make_server(owner=owner),
            lambda: len(pids_in(tmp_path)),
            lambda: sum(map(is_gone, pids_in(tmp_path))),
        )


def pids_in(folder: Path) -> list[int]:
    """Return the process of each start that a server noted."""
    return [int(pid) for pid in (folder / "pids").read_text().split()]


def observed(run: Run) -> list[str]:
    return [step.observation for step in run.steps.order_by("index")]


def test_the_calls_of_a_run_share_one_session(reached):
    tools = reached.take("count")
    before = reached.begun()

    run = reached.executed(call("count"), call("count"), call("count"), tools=tools)

    assert observed(run) == ["1", "2", "3"]
    assert reached.begun() - before == 1
    assert reached.ended() == before + 1


def test_another_run_has_a_session_of_its_own(reached):
    tools = reached.take("count")

    first = reached.executed(call("count"), tools=tools)
    second = reached.executed(call("count"), tools=tools)

    assert observed(first) == observed(second) == ["1"]


def test_parallel_calls_share_the_session(reached):
    tools = reached.take("count", "add")
    before = reached.begun()
    both = calls(
        *(call("count", id=f"c{n}") for n in range(4)),
        *(call("add", id=f"a{n}", a=n, b=1) for n in range(4)),
    )

    run = reached.executed(both, tools=tools)

    assert sorted(observed(run)) == sorted("12341234")
    assert reached.begun() - before == 1


@pytest.mark.slow
def test_a_run_that_waits_for_approval_keeps_no_session(reached):
    (count,) = reached.take("count")
    (add,) = reached.take("add", approval="always")
    before = reached.begun()

    script = [call("count"), call("add", a=1, b=2), call("count"), "Done."]

    with model_server(script=script) as model:
        provider = make_provider(reached.server.owner, base_url=model.base_url)
        agent = make_agent(reached.server.owner, tools=[count, add], provider=provider)
        run = executed(agent)
        assert run.status == "awaiting_approval"
        assert reached.ended() == before + 1
        approve_step(run.steps.get(tool="add").decisions.get(), by=reached.server.owner)
        go_on(run)

    assert observed(run) == ["1", "3", "1"]
    assert reached.begun() - before == 2


@pytest.mark.parametrize("name", ["ask_model", "ask_person"])
def test_what_a_server_asks_of_us_is_refused_at_once(reached, name):
    (ask,) = reached.take(name)

    with pytest.raises(ToolFailed, match="This client offers nothing"):
        call_tool(freeze_tool(ask), {}, deadline=Deadline(seconds=60))


@pytest.fixture
def small(settings, tmp_path) -> McpServer:
    """Give a server that starts fast."""
    settings.MCP_COMMANDS = small_command(tmp_path)
    return make_server()


@pytest.fixture
def sessions() -> Iterator[McpSessions]:
    with McpSessions() as kept:
        yield kept


def asked(tool, sessions, seconds=60, **arguments):
    deadline = Deadline(seconds=seconds)
    return call_tool(
        freeze_tool(tool), arguments, deadline=deadline, mcp_sessions=sessions
    )


def test_a_process_that_died_is_started_again_for_the_next_call(
    small, sessions, tmp_path
):
    (count,) = take_over(small, "count")
    asked(count, sessions)
    os.kill(pids_in(tmp_path)[-1], 9)
    with suppress(ToolFailed):  # unless its end was noticed before
        asked(count, sessions)

    assert asked(count, sessions) in ("1", "2")
    assert len(pids_in(tmp_path)) == 3  # one of them to import the tool


@pytest.mark.slow
def test_a_call_that_took_too_long_does_not_end_the_session(settings, sessions):
    settings.MCP_COMMANDS = command_line()
    server = make_server()
    (count,) = take_over(server, "count")
    (hang,) = take_over(server, "hang", timeout=1.0)
    asked(count, sessions)
    with pytest.raises(ToolTimedOut):
        asked(hang, sessions)

    assert asked(count, sessions) == "2"


@pytest.mark.slow
def test_a_server_that_answers_nothing_any_more_is_replaced(small, sessions, tmp_path):
    count, stick = take_over(small, "count", "stick", timeout=1.0)
    with pytest.raises(ToolTimedOut):
        asked(stick, sessions)
    count.timeout = 30.0
    count.save()

    assert asked(count, sessions) == "1"
    assert [is_gone(pid) for pid in pids_in(tmp_path)[:-1]] == [True, True]


def test_closing_the_sessions_ends_all_processes_of_a_server(small, tmp_path):
    (breed,) = take_over(small, "breed")
    with McpSessions() as sessions:
        child = int(asked(breed, sessions))

    assert is_gone(child)
    assert all(map(is_gone, pids_in(tmp_path)))


def test_a_killed_worker_leaves_none_of_its_processes_behind(tmp_path):
    program = (
        "import sys, time\n"
        "from tools.mcp.commands import ServerCommand\n"
        "from tools.mcp.session import Session\n"
        "from tools.mcp.stdio import StdioLink\n"
        "from tools.net.deadline import Deadline\n"
        "session = Session(StdioLink(ServerCommand('x', tuple(sys.argv[1:]))))\n"
        "session.begin(Deadline(seconds=60))\n"
        "print(session.call('breed', {}, Deadline(seconds=60)), flush=True)\n"
        "time.sleep(600)\n"
    )
    words = (sys.executable, str(SMALL_SERVER), str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    ) as worker:
        child = int(worker.stdout.readline())
        worker.kill()

    assert is_gone(child)
    assert all(map(is_gone, pids_in(tmp_path)))


@pytest.mark.slow
def test_a_session_the_server_forgot_is_begun_again(settings, sessions):
    with mcp_server() as running:
        settings.PRIVATE_HOSTS = running.policy
        (count,) = take_over(make_server(url=running.url), "count")
        asked(count, sessions)
        assert asked(count, sessions) == "2"
        running.server.session_manager._server_instances.clear()

        assert asked(count, sessions) == "1"


@pytest.mark.slow
def test_a_changed_tool_is_noticed_in_a_session_that_is_open(settings, sessions):
    with mcp_server() as running:
        settings.PRIVATE_HOSTS = running.policy
        add, turn = take_over(make_server(url=running.url), "add", "turn")
        asked(add, sessions, a=1, b=2)
        asked(turn, sessions)

        with pytest.raises(ToolFailed, match="changed the tool 'add'"):
            asked(add, sessions, a=3, b=4)

        assert running.sums == ["1 + 2"]
