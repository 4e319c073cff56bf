"""A process that hangs ends itself, and one that does not shows that."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentsite.supervise import ROOT

HANGS = """
import threading, time
from agentsite import watchdog

watchdog.CHECK_SECONDS = 0.1
def stuck_for_ever():
    threading.Event().wait()
threading.Thread(target=stuck_for_ever, daemon=True).start()
watchdog.start_watchdog(lambda: ["the loop"])
time.sleep(60)
"""


def test_a_hung_process_exits_with_the_stacks_of_its_threads():
    done = subprocess.run(
        [sys.executable, "-c", HANGS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert done.returncode == 1
    assert "the loop does not respond" in done.stderr
    assert "stuck_for_ever" in done.stderr


def check(file: Path) -> int:
    done = subprocess.run(
        [sys.executable, "-m", "agentsite.watchdog"],
        cwd=ROOT,
        env={**os.environ, "AGENTSITE_ALIVE_FILE": str(file)},
        check=False,
    )
    return done.returncode


@pytest.mark.parametrize(
    ("age", "code"),
    [
        pytest.param(5, 0, id="fresh"),
        pytest.param(600, 1, id="old"),
        pytest.param(None, 1, id="missing"),
    ],
)
def test_the_health_check_of_a_container_looks_at_the_file(tmp_path, age, code):
    file = tmp_path / "alive"
    if age is not None:
        file.touch()
        os.utime(file, (time.time() - age,) * 2)

    assert check(file) == code


NOTIFIES = """
import time
from agentsite import watchdog

watchdog.CHECK_SECONDS = 0.1
watchdog.start_watchdog(list)
time.sleep(60)
"""


def test_systemd_is_notified_that_the_process_is_alive(tmp_path):
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(path)
        systemd.settimeout(30)
        process = subprocess.Popen(
            [sys.executable, "-c", NOTIFIES],
            cwd=ROOT,
            env={**os.environ, "NOTIFY_SOCKET": path},
        )
        try:
            received = systemd.recv(100)
        finally:
            process.kill()
            process.wait()

    assert received == b"WATCHDOG=1"
