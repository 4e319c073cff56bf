"""Talking with a process made for one call: give it the call, wait for the outcome."""

import json
import os
import selectors
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tools.errors import ToolFailed
from tools.net.deadline import Deadline

MAX_OUTCOME = 16 << 20
"""Bytes of an outcome."""

READ_SIZE = 1 << 16
GRACE, STEP = 1.0, 0.1
"""Seconds a process may live on without an outcome, and between two looks at it."""

SIGNAL_EXIT_BASE = 128
"""What shells and bubblewrap add to the number of a signal."""

Process = subprocess.Popen[bytes]


class OutputLimits(NamedTuple):
    """How much a process may print and answer, and who reads lines before that."""

    max_printed: int
    max_answer: int
    on_line: Callable[[bytes], None] | None
    on_print: Callable[[bytes], None] | None = None


class ProcessPrintedTooMuch(ToolFailed):
    """The code prints without end."""

    def __init__(self, limit: int) -> None:
        size = f"{limit >> 20} MB" if limit >> 20 else f"{limit >> 10} KB"
        super().__init__(f"The tool printed more than {size} and was ended.")


class OutcomeTooLarge(ToolFailed):
    def __init__(self, limit: int) -> None:
        super().__init__(f"The tool returned more than {limit >> 20} MB and was ended.")


class ProcessExited(ToolFailed):
    """The process is gone without an outcome."""

    def __init__(self, code: int) -> None:
        number = -code if code < 0 else code - SIGNAL_EXIT_BASE
        if number in signal.valid_signals():
            how = f"was ended by the signal {signal.Signals(number).name}"
        else:
            how = f"ended itself with the code {code}"
        super().__init__(f"The process of the tool {how} before it had a result.")


@dataclass(frozen=True)
class Program:
    """What a process runs, where, and the only variables it knows."""

    argv: list[str]
    cwd: str | Path
    env: Mapping[str, str]
    max_printed: int
    """Bytes it may print."""
    max_answer: int = MAX_OUTCOME

    def start(self, writer: int) -> Process:
        """Start it, in a group of its own so that its children end with it.

        The number of the pipe for its outcome is its last word.
        """
        return subprocess.Popen(  # noqa: S603  # our own modules, by this interpreter
            [*self.argv, str(writer)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[writer],
            cwd=self.cwd,
            env=self.env,
            start_new_session=True,
        )


def run_program(
    program: Program,
    asked: bytes,
    *,
    deadline: Deadline,
    on_line: Callable[[bytes], None] | None = None,
    on_print: Callable[[bytes], None] | None = None,
) -> bytes:
    """Start the program, give it the call, return its outcome; end it in any case.

    The outcome has no line break; `on_line` receives the lines before it at once.
    `on_print` receives what the program prints; otherwise that is thrown away.
    Raise `ToolFailed` where it gives none, `Interrupted` where `deadline` says so.
    """
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as answers:
        try:
            process = program.start(writer)
        finally:
            os.close(writer)
        limits = OutputLimits(
            program.max_printed, program.max_answer, on_line, on_print
        )
        return exchange_with_process(process, asked, answers.fileno(), deadline, limits)


def parse_program_outcome(answer: bytes) -> Any:
    """Return the value of an outcome that our own module wrote, or raise its error."""
    outcome = json.loads(answer)
    if "error" in outcome:
        raise ToolFailed(outcome["error"])
    return outcome["value"]


def exchange_with_process(
    process: Process,
    asked: bytes,
    answers: int,
    deadline: Deadline,
    limits: OutputLimits,
) -> bytes:
    """Return what comes out of the pipe `answers`; end the process in any case."""
    with process:
        try:
            answer = read_process_outcome(process, asked, answers, deadline, limits)
            code = wait_for_exit_code(process, deadline) if not answer else 0
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    if not answer:
        raise ProcessExited(code)
    return answer


def wait_for_exit_code(process: Process, deadline: Deadline) -> int:
    """Return how a process ended that gave no outcome; one that stays is ended."""
    for _ in range(int(GRACE / STEP)):
        with suppress(subprocess.TimeoutExpired):
            return process.wait(STEP)
        deadline.check()
    os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def read_process_outcome(
    process: Process,
    asked: bytes,
    answers: int,
    deadline: Deadline,
    limits: OutputLimits,
) -> bytes:
    """Write the call and read until the outcome is complete, in slices."""
    assert process.stdin is not None  # for the type checker
    assert process.stdout is not None
    rest, printed, answer = memoryview(asked), 0, bytearray()
    os.set_blocking(process.stdin.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(answers, selectors.EVENT_READ)
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.register(process.stdin, selectors.EVENT_WRITE)
        while True:
            deadline.check()
            for key, _ in selector.select(max(deadline.next_wait(), 0.001)):
                if key.fileobj is process.stdin:
                    rest = write_available(key.fd, rest)
                    if not rest:
                        selector.unregister(process.stdin)
                        process.stdin.close()
                    continue
                piece = os.read(key.fd, READ_SIZE)
                if key.fd == answers:
                    answer = take_lines(answer, piece, limits.on_line)
                    if not piece:
                        pass_on_rest(process.stdout.fileno(), printed, limits)
                        return bytes(answer)
                    continue
                if not piece:
                    selector.unregister(process.stdout)
                printed = pass_on_printed(piece, printed, limits)
            if printed > limits.max_printed:
                raise ProcessPrintedTooMuch(limits.max_printed)
            if len(answer) > limits.max_answer:
                raise OutcomeTooLarge(limits.max_answer)


def pass_on_printed(piece: bytes, printed: int, limits: OutputLimits) -> int:
    """Pass on what may still be printed; return the bytes printed with `piece`."""
    if limits.on_print is not None:
        limits.on_print(piece[: max(limits.max_printed - printed, 0)])
    return printed + len(piece)


def pass_on_rest(pipe: int, printed: int, limits: OutputLimits) -> None:
    """Pass on what was printed before the outcome and is not read yet."""
    os.set_blocking(pipe, False)
    with suppress(OSError):
        while printed < limits.max_printed and (piece := os.read(pipe, READ_SIZE)):
            printed = pass_on_printed(piece, printed, limits)


def take_lines(
    answer: bytearray, piece: bytes, on_line: Callable[[bytes], None] | None
) -> bytearray:
    """Add a piece, pass on the lines that are complete, return what follows them."""
    answer += piece
    if on_line is None or b"\n" not in piece:
        return answer
    *lines, rest = answer.split(b"\n")
    for line in lines:
        with suppress(ValueError):  # the function itself wrote to the pipe
            on_line(bytes(line))
    return rest


def write_available(pipe: int, rest: memoryview) -> memoryview:
    """Write what fits; return what is left, nothing if nobody reads."""
    try:
        return rest[os.write(pipe, rest) :]
    except BlockingIOError:
        return rest
    except OSError:
        return rest[:0]
