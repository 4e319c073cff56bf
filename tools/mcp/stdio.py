"""An MCP server that is a process: messages as lines on its input and output.

One thread owns the process and its pipes; callers hand it messages and wait. The
kernel ends the process with the thread that started it, so it must be that thread.
"""

import json
import logging
import os
import queue
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Literal

from tools.errors import DeadlineExceeded, ToolFailed
from tools.mcp import launch
from tools.mcp.commands import ServerCommand
from tools.mcp.errors import (
    CommandNotStarted,
    McpFailed,
    NotMcpMessage,
    ServerGone,
    shorten_server_text,
)
from tools.mcp.wire import (
    LineSplitter,
    Message,
    Receiver,
    build_rpc_request,
    build_server_reply,
    is_id,
    parse_rpc_messages,
)
from tools.net.deadline import Deadline

logger = logging.getLogger(__name__)

READ_SIZE = 1 << 16
EXIT_GRACE = 0.3
"""Seconds a server gets to end when its input ends, and again when it is asked to."""

PING_SECONDS = 2.0
"""How long a server that did not answer in time gets to show that it is alive."""

MAX_STDERR = 2_000
"""Bytes of what it wrote last to its error output."""

Answers = queue.SimpleQueue[Message | McpFailed]


class StdioLink:
    """One process, in a group of its own, for all calls of a session."""

    def __init__(self, command: ServerCommand) -> None:
        self.where = repr(command.name)
        self.version = ""
        self.receive: Receiver = build_server_reply
        self._command = command
        self._waiting: dict[object, Answers] = {}
        self._outbox = deque[memoryview]()
        self._failure: McpFailed | None = None
        self._ending: Literal["", "close", "kill"] = ""
        self._is_suspect = False
        self._lines = LineSplitter(self.where)
        self._words = bytearray()
        self._lock = threading.Lock()
        self._started = threading.Event()
        self._wakeup, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._thread = threading.Thread(
            target=self._serve, name=f"mcp-{command.name}", daemon=True
        )
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def request(self, message: Message, deadline: Deadline) -> Message:
        """Send a request and return the response to it; raise `ToolFailed`."""
        answers: Answers = queue.SimpleQueue()
        number = message["id"]
        with self._lock:
            if self._failure is not None:
                raise self._failure
            self._waiting[number] = answers
        try:
            self.notify(message, deadline)
            return self._wait_for_answer(answers, deadline)
        except DeadlineExceeded:
            self._is_suspect = True
            raise
        finally:
            self._waiting.pop(number, None)

    def notify(self, message: Message, deadline: Deadline) -> None:
        """Hand over what has no response; it is sent as soon as the pipe takes it."""
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        self._outbox.append(memoryview(line))
        self._wake()

    def listen(self, deadline: Deadline) -> None:
        """Do nothing: the output is always read."""

    def is_usable(self) -> bool:
        """Whether it runs, and still answers after a call ended without an answer."""
        if self._failure is not None or self._ending:
            return False
        if not self._is_suspect or self._waiting:
            return True
        try:
            ping = build_rpc_request(f"ping-{time.monotonic_ns()}", "ping", {})
            self.request(ping, Deadline(seconds=PING_SECONDS))
        except (ToolFailed, DeadlineExceeded):
            return False
        self._is_suspect = False
        return True

    def close(self) -> None:
        """End the input, wait a moment, then end what is left of the group."""
        self._end("close")

    def abandon(self) -> None:
        """End the whole group at once."""
        self._end("kill")

    def _end(self, how: Literal["close", "kill"]) -> None:
        self._ending = "kill" if self._ending == "kill" else how
        self._wake()
        self._thread.join()

    def _wake(self) -> None:
        with self._lock, suppress(BlockingIOError):  # full, so it wakes anyway
            if self._waker >= 0:
                os.write(self._waker, b".")

    def _wait_for_answer(self, answers: Answers, deadline: Deadline) -> Message:
        while True:
            deadline.check()
            with suppress(queue.Empty):
                answer = answers.get(timeout=max(deadline.next_wait(), 0.001))
                if isinstance(answer, McpFailed):
                    raise answer
                return answer

    def _serve(self) -> None:
        """Own the process from its start to its end; runs in a thread."""
        failure: McpFailed = ServerGone(self.where, "its session has ended")
        try:
            self._process = start_server_process(self._command)
        except McpFailed as failed:
            self._failure = failed
            self._started.set()
            self._close_wakeup()
            return
        self._started.set()
        try:
            self._exchange()
        except McpFailed as failed:
            failure = failed
        except Exception:  # whoever waits must not wait forever
            logger.exception("the exchange with the MCP server %s broke", self.where)
        finally:
            self._end_process()
            with self._lock:
                self._failure = failure
                waiting = list(self._waiting.values())
            for answers in waiting:
                answers.put(failure)
            self._close_wakeup()

    def _exchange(self) -> None:
        """Carry messages until the link is closed; raise `McpFailed` at another end."""
        stdin, stdout, stderr = self._get_pipes()
        with selectors.DefaultSelector() as selector:
            for one in (stdout, stderr, self._wakeup):
                selector.register(one, selectors.EVENT_READ)
            is_writing = False
            while not self._ending:
                if is_writing != bool(self._outbox):
                    is_writing = not is_writing
                    if is_writing:
                        selector.register(stdin, selectors.EVENT_WRITE)
                    else:
                        selector.unregister(stdin)
                for key, _ in selector.select():
                    if key.fd == stdin:
                        self._write(stdin)
                    elif key.fd == self._wakeup:
                        os.read(self._wakeup, READ_SIZE)
                    elif not self._read(key.fd, is_output=key.fd == stdout):
                        selector.unregister(key.fd)
                        if key.fd == stdout:
                            raise self._describe_end()

    def _write(self, stdin: int) -> None:
        rest = self._outbox[0]
        try:
            sent = os.write(stdin, rest)
        except BlockingIOError:
            return
        except OSError:
            raise self._describe_end() from None
        if sent == len(rest):
            self._outbox.popleft()
        else:
            self._outbox[0] = rest[sent:]

    def _read(self, pipe: int, *, is_output: bool) -> bool:
        """Take in what has come; False at the end."""
        try:
            piece = os.read(pipe, READ_SIZE)
        except BlockingIOError:
            return True
        if not is_output:
            self._words = (self._words + piece)[-MAX_STDERR:]
        elif piece:
            for line in self._lines.feed(piece):
                self._take_line(line)
        return bool(piece)

    def _take_line(self, line: bytes) -> None:
        try:
            messages = parse_rpc_messages(line, self.where)
        except NotMcpMessage:
            return  # servers print; what is not a message is left out
        for one in messages:
            if "method" in one:
                if answer := self.receive(one):
                    self.notify(answer, Deadline())
            elif "result" in one or "error" in one:
                number = one.get("id")
                answers = self._waiting.get(number) if is_id(number) else None
                if answers is not None:
                    self._lines.start_next_answer()
                    answers.put(one)

    def _get_pipes(self) -> tuple[int, int, int]:
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        numbers = tuple(pipe.fileno() for pipe in pipes if pipe is not None)
        for number in numbers:
            os.set_blocking(number, False)
        stdin, stdout, stderr = numbers
        return stdin, stdout, stderr

    def _describe_end(self) -> McpFailed:
        code = self._wait_for_exit(EXIT_GRACE)
        assert self._process.stderr is not None  # for the type checker
        with suppress(OSError):
            more = os.read(self._process.stderr.fileno(), READ_SIZE)
            self._words = (self._words + more)[-MAX_STDERR:]
        last = shorten_server_text(
            self._words.decode(errors="replace").strip().rpartition("\n")[2]
        )
        if code == launch.NOT_FOUND:
            return CommandNotStarted(self._command.name, last or "not found")
        words = f". Its last words: {last}" if last else ""
        return ServerGone(self.where, describe_server_exit(code) + words)

    def _end_process(self) -> None:
        """End what is left of the group, politely if the link was closed."""
        assert self._process.stdin is not None  # for the type checker
        if self._ending == "close":
            with suppress(OSError):
                self._process.stdin.close()
            if self._wait_for_exit(EXIT_GRACE) is None:
                self._signal_group(signal.SIGTERM)
                self._wait_for_exit(EXIT_GRACE)
        self._signal_group(signal.SIGKILL)
        with suppress(OSError):  # what was not sent
            self._process.__exit__(None, None, None)

    def _signal_group(self, number: signal.Signals) -> None:
        """Reach all of the group; its number is its own until the leader is reaped."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _wait_for_exit(self, seconds: float) -> int | None:
        """Return the code of its end, None if it still runs after `seconds`."""
        until = time.monotonic() + seconds
        while (code := poll_exit_code(self._process.pid)) is None:
            if time.monotonic() > until or self._ending == "kill":
                break
            time.sleep(0.01)
        return code

    def _close_wakeup(self) -> None:
        with self._lock:
            waker, self._waker = self._waker, -1
        os.close(waker)
        os.close(self._wakeup)


def describe_server_exit(code: int | None) -> str:
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
