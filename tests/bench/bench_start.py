"""Measure what a newcomer waits for, and what the product holds when nobody uses it.

    python -m tests.bench.bench_start

Clones the last commit into a folder of its own, runs `make run` there twice, each time
until the site answers, and ends it by SIGTERM. Downloads what the lock file names, so
the first start depends on the network. Memory is the proportional set size of all
processes, a minute of idleness after the second start. Exits 1 where a target is
missed.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.bench_runs import Measure, Target
from tests.support.servers import free_port, is_healthy

ROOT = Path(__file__).parent.parent.parent
COLD = Target(180, 60)
AGAIN = Target(10, 4)
IDLE = Target(400, 250)
PATIENCE = 600


def main() -> int:
    """Start twice, print the table, and say by the exit code if all is reached."""
    with tempfile.TemporaryDirectory(prefix="agentsite-start-") as folder:
        clone = Path(folder, "clone")
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        with running(clone) as (cold, _):
            pass
        with running(clone) as (again, pid):
            time.sleep(60)
            idle = sum(map(memory, family(pid)))
    found = [
        Measure("s from a fresh clone until ready", cold, None, COLD),
        Measure("s until ready, the second time", again, None, AGAIN),
        Measure("MB of all processes, idle", idle, None, IDLE),
    ]
    sys.stdout.write("".join(f"{each.line()}\n" for each in found))
    return 0 if all(each.is_reached for each in found) else 1


@contextmanager
def running(clone: Path) -> Iterator[tuple[float, int]]:
    """Run `make run`; give the seconds until it answered, and the process id."""
    port = free_port()
    outside = ("DATABASE_URL", "REDIS_URL", "AGENTSITE_DATA", "VIRTUAL_ENV")
    env = {name: value for name, value in os.environ.items() if name not in outside}
    began = time.monotonic()
    process = subprocess.Popen(
        ["make", "run"],
        cwd=clone,
        env={**env, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        while not is_healthy(port):
            late = time.monotonic() > began + PATIENCE
            if late or process.poll() is not None:
                raise SystemExit("`make run` did not become ready.")
            time.sleep(0.05)
        yield time.monotonic() - began, process.pid
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def family(pid: int) -> list[int]:
    """Return a process and all that come from it."""
    message = subprocess.run(
        ["ps", "-eo", "ppid=,pid="], check=True, text=True, stdout=-1
    )
    pairs = [line.split() for line in message.stdout.splitlines()]
    found = [pid]
    for parent in found:  # it grows meanwhile
        found += [int(child) for above, child in pairs if int(above) == parent]
    return found


def memory(pid: int) -> float:
    """Return the MB of a process; what it shares is counted in parts."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1e3


if __name__ == "__main__":
    sys.exit(main())
