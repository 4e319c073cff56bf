"""Calls in a process of their own: what comes back, and how it ends."""

import contextlib
import json
import os
import sys
import threading
import time

import pytest

from tools.errors import CallCanceled, DeadlineExceeded, ToolFailed
from tools.net.deadline import Deadline
from tools.sandbox.subprocess_protocol import (
    OutcomeTooLarge,
    ProcessExited,
    ProcessPrintedTooMuch,
    Program,
    parse_program_outcome,
    run_program,
)

HEAD = "import os, sys, time; out = int(sys.argv[-1]); "


def run(code, asked=b"", *, deadline=None, on_line=None, **limits):
    program = Program(
        [sys.executable, "-c", HEAD + code],
        cwd="/",
        env={},
        **{"max_printed": 1 << 20, **limits},
    )
    return run_program(
        program, asked, deadline=deadline or Deadline(seconds=30), on_line=on_line
    )


def test_the_call_goes_in_and_the_outcome_comes_out():
    asked = b"x" * 300_000

    outcome = run("print('aside'); os.write(out, sys.stdin.buffer.read()[::-1])", asked)

    assert outcome == asked


def test_lines_before_the_outcome_are_passed_on_at_once():
    lines = []

    outcome = run(
        r"os.write(out, b'1\n2\nno'); time.sleep(0.2); os.write(out, b'ne\nend')",
        on_line=lines.append,
    )

    assert (outcome, lines) == (b"end", [b"1", b"2", b"none"])


@pytest.mark.parametrize(
    ("code", "error", "why"),
    [
        ("sys.exit(3)", ProcessExited, "ended itself with the code 3"),
        ("os.kill(os.getpid(), 9)", ProcessExited, "ended by the signal SIGKILL"),
        ("sys.exit(137)", ProcessExited, "ended by the signal SIGKILL"),
        ("os.close(out)", ProcessExited, "with the code 0"),
        ("print('x' * 2_000_000)", ProcessPrintedTooMuch, "more than 1 MB"),
        ("os.write(out, b'x' * 60_000)", OutcomeTooLarge, "returned more than"),
    ],
    ids=["code", "signal", "bwrap", "silent", "prints", "outcome"],
)
def test_a_process_without_an_outcome_is_explained(code, error, why):
    with pytest.raises(error, match=why):
        run(code, max_answer=50_000)


@pytest.mark.slow
def test_a_process_that_stays_without_an_outcome_is_ended():
    began = time.monotonic()

    with pytest.raises(ProcessExited, match="SIGKILL"):
        run("os.close(out); time.sleep(60)")

    assert time.monotonic() - began < 30


@pytest.mark.slow
def test_the_deadline_ends_the_process_and_its_children(tmp_path):
    file = tmp_path / "pid"
    code = f"import subprocess; c = subprocess.Popen(['sleep', '60']); \
open({str(file)!r}, 'w').write(str(c.pid)); time.sleep(60)"

    with pytest.raises(DeadlineExceeded):
        run(code, deadline=Deadline(seconds=3))

    child = int(file.read_text())
    for _ in range(100):
        if not is_running(child):
            return
        time.sleep(0.05)
    pytest.fail("The child still runs.")


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_canceled_call_ends_its_process():
    deadline = Deadline(seconds=60)
    threading.Timer(0.3, deadline.flag.set).start()

    with pytest.raises(CallCanceled):
        run("time.sleep(60)", deadline=deadline)


def test_no_pipe_is_left_open():
    before = len(os.listdir("/proc/self/fd"))

    for code in ("os.write(out, b'1')", "sys.exit(1)"):
        with contextlib.suppress(ProcessExited):
            run(code)

    assert len(os.listdir("/proc/self/fd")) == before


def test_an_outcome_is_a_value_or_an_error():
    assert parse_program_outcome(json.dumps({"value": [1]}).encode()) == [1]
    with pytest.raises(ToolFailed, match="No such city"):
        parse_program_outcome(b'{"error": "No such city."}')
