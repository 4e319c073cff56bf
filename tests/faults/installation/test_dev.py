"""`make dev`: starts everything, and leaves nothing behind."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.site import ROOT, environment, ps
from tests.support.servers import free_port, is_answering
from tests.support.timing import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.slow]


def find_processes(data: Path) -> list[str]:
    """Return the processes whose arguments or environment name the data folder."""
    return [line for line in ps("e", "-eo", "pid=,args=") if str(data) in line]


def test_serves_pages_with_a_worker_and_ends_all_of_it(tmp_path):
    data, port = tmp_path / "data", free_port()
    address = f"http://127.0.0.1:{port}/healthz"
    with subprocess.Popen(
        [sys.executable, "-m", "agentsite.dev"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(data) | {"PORT": str(port)},
    ) as process:
        try:
            wait_until(lambda: is_answering(address), seconds=180)
            wait_until(
                lambda: "ready" in (data / "log" / "worker.log").read_text(),
                seconds=180,
            )
        finally:
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=120)

    assert process.returncode == 0
    assert b"reloads at every change" in said
    wait_until(lambda: find_processes(data) == [])
