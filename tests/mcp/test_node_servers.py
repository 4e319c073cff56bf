"""The reference servers in Node.js, where `make check` has installed them."""

import json
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.mcp.rows import make_server, take_over
from tests.support.servers import free_port
from tools.definition.freeze import freeze_tool
from tools.errors import ToolFailed
from tools.kinds.registry import call_tool
from tools.mcp_servers.import_tools import discover_mcp_tools
from tools.mcp_servers.sessions import McpSessions
from tools.net.deadline import Deadline

PROGRAMS = Path(__file__).parents[2] / "node_modules" / ".bin"

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(
        not (PROGRAMS / "mcp-server-everything").exists(),
        reason="needs Node.js and what `make check` installs",
    ),
]


def command(name: str, *words: str) -> str:
    return f"tests={shlex.join([str(PROGRAMS / f'mcp-server-{name}'), *words])}"


@contextmanager
def everything_over_http() -> Iterator[int]:
    """Run the server; give its port."""
    port = free_port()
    words = [str(PROGRAMS / "mcp-server-everything"), "streamableHttp"]
    with subprocess.Popen(
        words,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            wait_until_open(port)
            yield port
        finally:
            process.kill()


def wait_until_open(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the server does not start")


@pytest.fixture(params=["stdio", "http"])
def everything(request, settings):
    if request.param == "stdio":
        settings.MCP_COMMANDS = command("everything", "stdio")
        yield make_server()
        return
    with everything_over_http() as port:
        settings.PRIVATE_HOSTS = f"mcp=127.0.0.1:{port}"
        yield make_server(url=f"http://127.0.0.1:{port}/mcp")


@pytest.fixture
def sessions() -> Iterator[McpSessions]:
    with McpSessions() as kept:
        yield kept


def asked(tool, sessions, **arguments):
    deadline = Deadline(seconds=60)
    return call_tool(
        freeze_tool(tool), arguments, deadline=deadline, mcp_sessions=sessions
    )


@pytest.mark.slow
def test_tools_of_the_reference_server_are_imported_and_called(everything, sessions):
    echo, total = take_over(everything, "echo", "get-sum")

    assert asked(echo, sessions, message="hello") == "Echo: hello"
    assert "7" in asked(total, sessions, a=3, b=4)


def test_what_needs_a_task_cannot_be_imported(everything):
    offers = discover_mcp_tools(everything, by=everything.owner)

    flaws = {one.name: one.flaw for one in offers if one.flaw}
    assert flaws == {
        "simulate-research-query": "it runs only as a task, which is not supported"
    }


def test_thoughts_add_up_in_a_session(settings, sessions):
    settings.MCP_COMMANDS = command("sequential-thinking")
    (think,) = take_over(make_server(), "sequentialthinking")
    found = [
        asked(
            think,
            sessions,
            thought="So.",
            thoughtNumber=number,
            totalThoughts=3,
            nextThoughtNeeded=True,
        )
        for number in (1, 2, 3)
    ]

    assert [json.loads(text)["thoughtHistoryLength"] for text in found] == [1, 2, 3]


def test_files_are_read_only_where_the_operator_allows(settings, sessions, tmp_path):
    (tmp_path / "note.txt").write_text("remember the milk")
    settings.MCP_COMMANDS = command("filesystem", str(tmp_path))
    (read,) = take_over(make_server(), "read_text_file")

    assert asked(read, sessions, path=str(tmp_path / "note.txt")) == "remember the milk"
    with pytest.raises(ToolFailed, match="outside allowed directories"):
        asked(read, sessions, path="/etc/passwd")
