"""An MCP server that is a process: messages as lines on its input and output."""

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from tools.mcp import launch
from tools.mcp.commands import ServerCommand
from tools.mcp.errors import (
    CommandNotStarted,
    NotMcpMessage,
    ServerGone,
    shorten_server_text,
)
from tools.mcp.wire import (
    LineSplitter,
    Message,
    build_server_reply,
    is_response_to,
    parse_rpc_messages,
)
from tools.net.deadline import Deadline

READ_SIZE = 1 << 16
EXIT_GRACE = 0.3
"""Seconds a server gets to end by itself when its input ends."""

MAX_STDERR = 2_000
"""Bytes of what it wrote last to its error output."""


class StdioLink:
    """One process, in a group of its own, ended with the call."""

    def __init__(self, command: ServerCommand, *, deadline: Deadline) -> None:
        self.where = repr(command.name)
        self.version = ""
        self._deadline = deadline
        self._lines = LineSplitter(self.where)
        self._arrived = list[bytes]()
        self._words = bytearray()
        self._process = start_server_process(command)
        self._selector = selectors.DefaultSelector()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None  # for the type checker
            os.set_blocking(pipe.fileno(), False)
        self._selector.register(self._process.stdout, selectors.EVENT_READ)  # type: ignore[arg-type]  # it is a pipe
        self._selector.register(self._process.stderr, selectors.EVENT_READ)  # type: ignore[arg-type]  # it is a pipe

    def request(self, message: Message) -> Message:
        """Send a request and return the response to it; raise `ToolFailed`."""
        self.notify(message)
        while True:
            while self._arrived:
                for one in self._parse_line(self._arrived.pop(0)):
                    if is_response_to(one, message["id"]):
                        return one
                    if answer := build_server_reply(one):
                        self.notify(answer)
            self._pump()

    def notify(self, message: Message) -> None:
        """Send what has no response; read meanwhile, as a full pipe would hang us."""
        assert self._process.stdin is not None  # for the type checker
        rest = memoryview(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        self._selector.register(self._process.stdin, selectors.EVENT_WRITE)
        try:
            while rest:
                rest = rest[self._pump(rest) :]
        finally:
            self._selector.unregister(self._process.stdin)

    def close(self) -> None:
        """End the input, wait a moment, then end what is left of the group."""
        assert self._process.stdin is not None  # for the type checker
        with suppress(OSError):
            self._process.stdin.close()
        self._wait_for_exit()
        self.abandon()

    def abandon(self) -> None:
        """End the whole group at once."""
        self._selector.close()
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(OSError):  # what was not sent any more
            self._process.__exit__(None, None, None)

    def _parse_line(self, line: bytes) -> list[Message]:
        try:
            return parse_rpc_messages(line, self.where)
        except NotMcpMessage:
            return []  # servers print; what is no message is left out

    def _pump(self, rest: memoryview | None = None) -> int:
        """Read what has come; return how many bytes of `rest` were sent."""
        self._deadline.check()
        sent = 0
        for key, _ in self._selector.select(max(self._deadline.next_wait(), 0.001)):
            if key.fileobj is self._process.stdin:
                try:
                    sent = os.write(key.fd, rest or b"")
                except BlockingIOError:
                    continue
                except OSError:
                    self._raise_server_gone()
                continue
            piece = os.read(key.fd, READ_SIZE)
            if not piece:
                self._selector.unregister(key.fileobj)
                if key.fileobj is self._process.stdout:
                    self._raise_server_gone()
            elif key.fileobj is self._process.stdout:
                self._arrived += self._lines.feed(piece)
            else:
                self._words = (self._words + piece)[-MAX_STDERR:]
        return sent

    def _raise_server_gone(self) -> NoReturn:
        """Raise `ServerGone` with what is known of its end."""
        code = self._wait_for_exit()
        assert self._process.stderr is not None  # for the type checker
        with suppress(OSError):
            more = os.read(self._process.stderr.fileno(), READ_SIZE)
            self._words = (self._words + more)[-MAX_STDERR:]
        last = shorten_server_text(
            self._words.decode(errors="replace").strip().rpartition("\n")[2]
        )
        if code == launch.NOT_FOUND:
            raise CommandNotStarted(self.where.strip("'"), last or "not found")
        words = f". Its last words: {last}" if last else ""
        raise ServerGone(self.where, describe_server_exit(code) + words)

    def _wait_for_exit(self) -> int | None:
        """Return the code of its end, None where it still runs after the grace."""
        until = time.monotonic() + EXIT_GRACE
        while (code := poll_exit_code(self._process.pid)) is None:
            if time.monotonic() > until:
                break
            time.sleep(0.01)
        return code


def describe_server_exit(code: int | None) -> str:
    """Say how a process ended."""
    if code is None:
        return "it closed its output"
    if code < 0:
        return f"its process was ended by the signal {signal.Signals(-code).name}"
    return f"its process ended itself with the code {code}"


def poll_exit_code(pid: int) -> int | None:
    """Return how a child ended, None while it runs.

    It is not reaped, so that its number stays its own until its group is ended.
    """
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def start_server_process(command: ServerCommand) -> "subprocess.Popen[bytes]":
    """Start the command through `launch.py`, with few variables and no shell."""
    try:
        return subprocess.Popen(  # noqa: S603  # the operator's list
            [
                *(sys.executable, "-I", "-S", str(Path(launch.__file__))),
                *(str(os.getpid()), *command.argv),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tempfile.gettempdir(),
            env=command.environment,
            start_new_session=True,
        )
    except OSError as error:
        raise CommandNotStarted(command.name, error.strerror or str(error)) from None
