"""Real servers over standard input and output: the SDK's, and some that misbehave."""

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial

import pytest

from tests.mcp.rows import STDIO_SERVER, command_line, fork_sdk, make_server
from tools.errors import CallCanceled, DeadlineExceeded, ToolFailed
from tools.mcp.commands import ServerCommand
from tools.mcp.session import open_mcp_session
from tools.mcp.stdio import StdioLink
from tools.mcp_servers.import_tools import discover_mcp_tools
from tools.net.deadline import Deadline

SDK = ServerCommand("tests", (sys.executable, str(STDIO_SERVER)))
STEPS = 1000
MINUTE = partial(Deadline, seconds=60)


def calling(tool, command=SDK, **arguments):
    with open_mcp_session(StdioLink(command), MINUTE()) as session:
        return session.call(tool, arguments, MINUTE())


def forked():
    """Return the server of the SDK without the seconds of its imports."""
    return ServerCommand("tests", tuple(fork_sdk().command(str(STDIO_SERVER))))


def saying(program, *words):
    """Return a command that is a small program of its own."""
    return ServerCommand("odd", (sys.executable, "-c", program, *words))


class StopsWhen(threading.Event):
    """A Stop that is pressed as soon as something is there."""

    def __init__(self, condition):
        super().__init__()
        self.condition = condition

    def is_set(self):
        return bool(self.condition())


def is_gone(pid):
    for _ in range(STEPS):
        with suppress(FileNotFoundError), open(f"/proc/{pid}/stat") as stat:
            if stat.read().rpartition(")")[2].split()[0] not in ("Z", "X"):
                time.sleep(0.02)
                continue
        return True
    return False


@pytest.mark.slow
def test_finds_and_calls_the_tools_of_a_server():
    with open_mcp_session(StdioLink(SDK), MINUTE()) as session:
        names = [offer.name for offer in session.tools(MINUTE())]

        assert {"add", "hang", "die"} <= set(names)
        assert session.call("add", {"a": 1, "b": 2}, MINUTE()) == "3"


@pytest.mark.slow
def test_the_process_is_gone_after_the_session():
    assert is_gone(int(calling("pid")))


def test_sees_none_of_our_variables(monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "secret")
    monkeypatch.setenv("AGENTSITE_ENCRYPTION_KEYS", "secret")

    seen = set(calling("environment").split())

    assert seen <= {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"}


def test_what_a_tool_says_of_its_failure_is_the_sentence():
    with pytest.raises(ToolFailed, match="no such order"):
        calling("fail", forked(), why="no such order")


def test_a_server_that_dies_is_a_sentence_with_its_last_words():
    with pytest.raises(ToolFailed, match=r"ended itself with the code 7.*out of ink"):
        calling("die")


@pytest.mark.slow
def test_ten_megabytes_are_not_taken_in():
    with pytest.raises(ToolFailed, match="sent more than 10 MB"):
        calling("large", forked(), megabytes=10)


@pytest.mark.slow
def test_stop_ends_a_hanging_server_and_its_process():
    flag = threading.Event()
    threading.Timer(1.0, flag.set).start()
    link = StdioLink(SDK)
    deadline = Deadline(seconds=120, flag=flag)

    with pytest.raises(CallCanceled), open_mcp_session(link, deadline) as session:
        session.call("hang", {}, deadline)

    assert is_gone(link._process.pid)


def test_stop_ends_the_whole_group():
    program = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; "
        "time.sleep(600)'])\n"
        "sys.stderr.write(str(child.pid)); sys.stderr.flush()\n"
        "time.sleep(600)\n"
    )
    link = StdioLink(saying(program))
    deadline = Deadline(seconds=120, flag=StopsWhen(lambda: link._words))

    with pytest.raises(CallCanceled), open_mcp_session(link, deadline):
        pass

    assert is_gone(int(link._words))


@pytest.mark.slow
def test_a_server_that_reads_nothing_does_not_hang_a_large_request():
    link = StdioLink(saying("import time; time.sleep(600)"))
    message = {"jsonrpc": "2.0", "id": 1, "method": "x", "params": "x" * 3_000_000}

    with pytest.raises(DeadlineExceeded):
        link.request(message, Deadline(seconds=1))
    link.abandon()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (
            ServerCommand("no", ("/nowhere/at-all",)),
            "'no' does not start: .*No such file",
        ),
        (ServerCommand("no", ("/etc",)), "'no' does not start: .*Permission denied"),
        (saying("pass"), "ended itself with the code 0"),
        (saying("import os; os.kill(os.getpid(), 9)"), "ended by the signal SIGKILL"),
        (
            saying("import os; os.close(1); import time; time.sleep(600)"),
            "gone",
        ),
        (saying("print('x' * (11 << 20), flush=True)"), "more than 10 MB"),
        (saying("while True: print('noise ' * 999, flush=True)"), "more than 10 MB"),
        (saying("print('{}'); print('[1]'); print('null')"), "code 0"),
        (
            saying('print(\'{"id": 1, "result": 5}\'); input()'),
            "its response has no result",
        ),
        (
            saying('print(\'{"id": 1, "error": {}}\'); input()'),
            "says: an error without words",
        ),
        (
            saying('print(\'{"id": 1, "result": {}}\'); input()'),
            "unknown revision 'None'",
        ),
    ],
)
def test_whatever_a_program_does_is_a_sentence(command, why):
    link = StdioLink(command)

    with pytest.raises(ToolFailed, match=why), open_mcp_session(link, MINUTE()):
        pass


def test_a_killed_worker_leaves_no_server_behind():
    program = (
        "import sys, time\n"
        "from tools.mcp.commands import ServerCommand\n"
        "from tools.mcp.stdio import start_server_process\n"
        "one = start_server_process(ServerCommand('x', ('/bin/sleep', '600')))\n"
        "print(one.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    ) as worker:
        pid = int(worker.stdout.readline())
        worker.kill()

    assert is_gone(pid)


@pytest.mark.django_db
@pytest.mark.slow
def test_a_command_may_start_slower_than_an_address_may_answer(settings, monkeypatch):
    monkeypatch.setattr("tools.mcp_servers.import_tools.DISCOVERY_TIMEOUT", 0.01)
    settings.MCP_COMMANDS = command_line()
    server = make_server()

    names = [one.name for one in discover_mcp_tools(server, by=server.owner)]

    assert "add" in names
