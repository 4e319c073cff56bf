"""The log files of `make run` do not grow without bound."""

import sys

from agentsite.child_processes import Child, print_new_warnings
from tests.support.timing import wait_until

LIMIT = 200_000
WRITER = """
import os, time
for n in range(20_000):
    print("level=info event=%07d " % n + "x" * 60, flush=True)
    while os.fstat(1).st_size > 400_000:
        time.sleep(0.01)
"""
"""Faster than the log is looked at; on a busy machine it waits for that."""


def test_a_log_stays_below_its_limit_while_a_program_writes(tmp_path):
    child = Child(
        "noisy",
        [sys.executable, "-c", WRITER],
        tmp_path / "noisy.log",
        max_log_bytes=LIMIT,
    )
    child.start()
    largest = 0

    def is_done() -> bool:
        nonlocal largest
        print_new_warnings(child)
        largest = max(largest, *(path.stat().st_size for path in tmp_path.iterdir()))
        return not child.is_running

    wait_until(is_done)
    print_new_warnings(child)

    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["noisy.log", "noisy.log.1", "noisy.log.2"]
    assert largest < 20_000 * 90 / 2
    assert child.log.stat().st_size < LIMIT
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.glob("*.log.*"))


def test_a_line_without_an_end_is_rotated_too(tmp_path, capsys):
    child = Child("odd", [], tmp_path / "odd.log", max_log_bytes=LIMIT)
    child.log.write_bytes(b"x" * 2_000_000)

    print_new_warnings(child)

    assert child.log.stat().st_size == 0
    assert child.log.with_suffix(".log.1").stat().st_size == 2_000_000


def test_warnings_are_printed_in_both_formats_and_after_a_rotation(tmp_path, capsys):
    child = Child("web", [], tmp_path / "web.log", max_log_bytes=LIMIT)
    lines = ['level=warning event="one"', '{"level": "error", "event": "two"}']
    child.log.write_text("\n".join([*lines, "level=info event=no", "x" * LIMIT, ""]))
    print_new_warnings(child)
    with child.log.open("a") as log:
        log.write("level=critical event=three\n")

    print_new_warnings(child)

    said = capsys.readouterr().out.splitlines()
    assert said == [
        *(f"web: {line}" for line in lines),
        "web: level=critical event=three",
    ]


def test_a_log_that_cannot_be_kept_is_emptied(tmp_path, capsys):
    child = Child("web", [], tmp_path / "web.log", max_log_bytes=LIMIT)
    child.log.write_bytes(b"x\n" * LIMIT)
    child.log.with_suffix(".log.1").mkdir()  # cannot be a file
    (child.log.with_suffix(".log.2") / "full").mkdir(parents=True)

    print_new_warnings(child)

    assert child.log.stat().st_size == 0
    assert "was emptied" in capsys.readouterr().out
