"""Measure the delay from a worker's commit to a client of the live streams.

    python -m tests.bench.bench_live [--seconds 10] [--rate 200] [--runs 20]
                                     [--viewers 60] [--p95 250] [--p99 MS] [--mb MB]

Serves the database that the environment names (`DATABASE_URL`; SQLite without) with a
real uvicorn, lets one process commit steps to many runs as a worker does, with fsync
on, and lets another watch over HTTP. Prints p50, p95 and p99 for pages and programs;
exits 1 where one of them or the memory is above what it may be, or an event was missed.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field


@dataclass
class Measured:
    """What one kind of client saw."""

    delays: list[float] = field(default_factory=list)
    missed: int = 0

    def line(self, name: str) -> str:
        """Return the delays in milliseconds, in one line."""
        parts = [f"p{part}={self.ms(part):.0f}ms" for part in (50, 95, 99)]
        events = len(self.delays)
        return f"{name}: events={events} missed={self.missed} {' '.join(parts)}"

    def ms(self, part: int) -> float:
        """Return the milliseconds that so many of 100 events stay below."""
        return 1000 * sorted(self.delays)[int(len(self.delays) * part / 100)]


def main() -> int:
    """Run the measurement; return the exit code."""
    request = arguments()
    folder = tempfile.TemporaryDirectory(prefix="agentsite-bench-")
    environment = {
        "AGENTSITE_DATA": folder.name,
        "REDIS_URL": os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/15"),
        "AGENTSITE_LOG_LEVEL": "WARNING",
        "AGENTSITE_USER_STREAMS": "0",
        "PORT": str(request.port),
    }
    os.environ.update(environment)
    python = [sys.executable, "manage.py", "migrate", "-v", "0"]
    subprocess.run(python, check=True)
    command = [sys.executable, "-m", "uvicorn", "agentsite.asgi:application"]
    command += ["--port", str(request.port), "--log-level", "warning"]
    server = subprocess.Popen(command)
    try:
        return measure(request, server.pid)
    finally:
        server.terminate()
        server.wait(10)
        folder.cleanup()


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Measure the live delay.")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=float, default=200, help="commits a second")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--viewers", type=int, default=60)
    parser.add_argument("--port", type=int, default=18_790)
    never = float("inf")
    parser.add_argument("--p95", type=float, default=250, help="most milliseconds")
    parser.add_argument("--p99", type=float, default=never, help="most milliseconds")
    parser.add_argument("--mb", type=float, default=never, help="most memory")
    return parser.parse_args()


def measure(request: argparse.Namespace, pid: int) -> int:
    """Commit and watch; print what was seen."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
    import django  # noqa: PLC0415  # the settings need the environment set above

    django.setup()
    from tests.bench.loads import live_load  # noqa: PLC0415  # it needs Django set up

    run_ids, headers = live_load.prepare(request.runs)
    worker = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.loads.live_load", str(request.rate)]
        + [str(request.seconds), *map(str, run_ids)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    seen = asyncio.run(watch(request, run_ids, headers, worker))
    message, _ = worker.communicate()
    commits = {(run_id, index): at for run_id, index, at in json.loads(message)}
    took = max(commits.values()) - min(commits.values())
    good = True
    print(f"commits={len(commits)} a second={len(commits) / took:.0f}")
    for name, arrivals in seen.items():
        measured = compare(commits, arrivals)
        print(measured.line(name))
        good = not measured.missed and good
        good = (
            measured.ms(95) <= request.p95 and measured.ms(99) <= request.p99 and good
        )
    used = 1000 * cpu(pid) / len(commits)
    claim = memory(pid)
    print(
        f"viewers={request.viewers} web process: RSS={claim:.0f} MB, "
        f"CPU={used:.1f} ms a commit, its start included"
    )
    return 0 if good and claim <= request.mb else 1


Arrivals = list[dict[tuple[int, int], float]]


def compare(commits: dict[tuple[int, int], float], arrivals: Arrivals) -> Measured:
    """Return the delay of each commit at each client that watched its run."""
    measured = Measured()
    for client in arrivals:
        watched = {run_id for run_id, _ in client}
        for (run_id, index), at in commits.items():
            if run_id not in watched:
                continue
            if (run_id, index) in client:
                measured.delays.append(client[run_id, index] - at)
            else:
                measured.missed += 1
    return measured


async def watch(
    request: argparse.Namespace,
    run_ids: list[int],
    headers: dict[str, str],
    worker: "subprocess.Popen[str]",
) -> dict[str, Arrivals]:
    """Open all streams, then let the commits begin; return when each step arrived."""
    seen: dict[str, Arrivals] = {"pages": [], "programs": []}
    tasks = []
    for number in range(request.viewers):
        run_id = run_ids[number % len(run_ids)]
        is_page = number % 2 == 0
        path = f"/live/runs/{run_id}/" if is_page else f"/api/v1/runs/{run_id}/events"
        arrivals: dict[tuple[int, int], float] = {}
        seen["pages" if is_page else "programs"].append(arrivals)
        tasks.append(client(request.port, path, headers, run_id, arrivals))
    waiting = [asyncio.create_task(task) for task in tasks]
    await asyncio.sleep(3 + request.viewers / 200)
    assert worker.stdin is not None
    worker.stdin.write("begin\n")
    worker.stdin.flush()
    await asyncio.gather(*waiting)
    return seen


async def client(
    port: int,
    path: str,
    headers: dict[str, str],
    run_id: int,
    arrivals: dict[tuple[int, int], float],
) -> None:
    """Read one stream to its end, noting when each step's result was first seen."""
    reader, writer = await connect(port)
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    while line := await reader.readline():
        now = time.time()
        if index := index_in(line):
            arrivals.setdefault((run_id, index - 1), now)
        if b"event: end" in line or b'id="run-live"' in line:
            break
    writer.close()


async def connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect as soon as the server listens."""
    for _ in range(300):
        try:
            return await asyncio.open_connection("127.0.0.1", port, limit=2**22)
        except OSError:
            await asyncio.sleep(0.1)
    raise SystemExit("The server did not start within 30 seconds.")


def index_in(line: bytes) -> int:
    """Return 1 + the index of the step in a line, 0 where there is none."""
    if line.startswith(b'data: {"index"'):
        return int(json.loads(line[6:])["index"]) + 1
    mark = line.find(b"result-of-")
    if mark < 0 or b"data: " not in line[:6]:
        return 0
    return int(line[mark + 10 :].split(b".", 1)[0]) + 1


def memory(pid: int) -> float:
    """Return the resident memory of a process in MB."""
    with open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
    return 0.0


def cpu(pid: int) -> float:
    """Return the CPU seconds a process has used."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
