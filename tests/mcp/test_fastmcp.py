"""A server made with FastMCP, over both transports, installed by `make test-all`."""

import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.mcp.rows import make_server, take_over
from tests.support.fork_server import ForkServer, fork_server
from tests.support.servers import find_server_program, free_port, is_answering
from tests.tools.rows import make_user
from tools.definition.freeze import freeze_tool
from tools.errors import ToolFailed
from tools.kinds.registry import call_tool
from tools.mcp_servers.import_tools import discover_mcp_tools
from tools.mcp_servers.sessions import McpSessions
from tools.models import Credential, McpServer
from tools.net.deadline import Deadline
from tools.secrets import seal

PYTHON = find_server_program("python")
SERVER = Path(__file__).parent / "servers/fastmcp_server.py"
MODULES = (
    *("fastmcp.server.server", "fastmcp.server.auth.providers.jwt", "uncalled_for"),
    *("fastmcp.server.http", "fastmcp.tools.function_tool", "anyio._backends._asyncio"),
    *(
        "fastmcp.server.context",
        "fastmcp.utilities.types",
        "uvicorn",
        "mcp.server.stdio",
    ),
)
TOKEN = "token-of-the-tests"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db,
    pytest.mark.skipif(not PYTHON.exists(), reason="installed by `make test-all`"),
]


@contextmanager
def over_http(forks: ForkServer, *words: str) -> Iterator[str]:
    """Run the server; give its address."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    command = forks.command(str(SERVER), str(port), *words)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + 60
            while not is_answering(url):
                assert process.poll() is None
                assert time.monotonic() < until, "The server does not start."
                time.sleep(0.1)
            yield url
        finally:
            process.kill()


@pytest.fixture(scope="module")
def http_url(forks: ForkServer) -> Iterator[str]:
    with over_http(forks) as url:
        yield url


def allow(settings, url: str) -> None:
    """Let the product reach a server on loopback."""
    address = url.removeprefix("http://").partition("/")[0]
    settings.PRIVATE_HOSTS = f"mcp={address}"


@pytest.fixture(scope="module")
def forks() -> Iterator[ForkServer]:
    """Give what has the modules of the server imported."""
    with fork_server(*MODULES, python=str(PYTHON)) as running:
        yield running


@pytest.fixture(params=["stdio", "http"])
def server(request, settings) -> McpServer:
    """Give the server over each transport."""
    if request.param == "stdio":
        forks = request.getfixturevalue("forks")
        settings.MCP_COMMANDS = f"tests={shlex.join(forks.command(str(SERVER)))}"
        return make_server()
    url = request.getfixturevalue("http_url")
    allow(settings, url)
    return make_server(url=url)


@pytest.fixture
def sessions() -> Iterator[McpSessions]:
    with McpSessions() as kept:
        yield kept


def asked(tool, sessions, on_progress=None, **arguments):
    return call_tool(
        freeze_tool(tool),
        arguments,
        deadline=Deadline(seconds=60),
        mcp_sessions=sessions,
        on_progress=on_progress,
    )


def test_tools_are_imported_and_called(server, sessions):
    add, find_place = take_over(server, "add", "find_place")

    assert asked(add, sessions, a=1, b=2) == "3"
    assert asked(find_place, sessions, city="北京") == '{"city":"北京","degrees":21.5}'


def test_images_and_sounds_arrive(server, sessions):
    draw, speak = take_over(server, "draw", "speak")

    drawn, spoken = asked(draw, sessions), asked(speak, sessions)

    assert drawn.value == (
        "A red dot:\n[image 1: image/png, 69 bytes]\n[sound 2: audio/wav, 1,644 bytes]"
    )
    image, sound = drawn.media
    assert (image.media_type, image.content[:4]) == ("image/png", b"\x89PNG")
    assert (sound.media_type, sound.content[:4]) == ("audio/wav", b"RIFF")
    assert spoken.media == (sound,)


def test_errors_are_reported_in_the_words_of_the_server(server, sessions):
    fail, crash, confirm = take_over(server, "fail", "crash", "confirm")

    with pytest.raises(ToolFailed, match="no such order"):
        asked(fail, sessions, why="no such order")
    with pytest.raises(ToolFailed, match="wires crossed"):
        asked(crash, sessions)
    with pytest.raises(ToolFailed, match="This client offers nothing"):
        asked(confirm, sessions)


def test_the_session_is_kept_between_calls(server, sessions):
    (remember,) = take_over(server, "remember")

    assert asked(remember, sessions, word="blue") == "None"
    assert asked(remember, sessions, word="red") == "blue"


def test_progress_is_reported_while_the_call_runs(server, sessions):
    (count_to,) = take_over(server, "count_to")
    reported: list[str] = []

    value = asked(count_to, sessions, reported.append, number=3)

    assert value == "counted to 3"
    assert reported == ["number 1 (1 of 3)", "number 2 (2 of 3)", "number 3 (3 of 3)"]


def test_a_server_that_wants_a_token_says_so(settings, forks):
    owner = make_user()
    with over_http(forks, TOKEN) as url:
        allow(settings, url)
        with pytest.raises(ToolFailed, match="needs sign-in"):
            discover_mcp_tools(make_server(url=url, owner=owner), by=owner)
        credential = Credential.objects.create(
            name="key", owner=owner, hosts=[url], sealed=seal(TOKEN)
        )
        server = make_server(name="With", url=url, owner=owner, credential=credential)

        names = [one.name for one in discover_mcp_tools(server, by=owner)]

    assert "add" in names
