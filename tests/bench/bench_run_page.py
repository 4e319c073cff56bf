"""Measure the page of a run of 10 000 steps.

    python -m tests.bench.bench_run_page [--steps 10000] [--times 15]

Serves the database that the environment names with a real uvicorn, fills it with one
run that is over and one that is running, and reads their pages over HTTP: time to the
first byte, bytes of HTML, time of a step's body, and the delay from a commit to a
viewer of the running one. Exits 1 where one is above its target.
"""

import argparse
import contextlib
import http.client
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.bench.servers.site import cpu_of

MUST_FIRST_BYTE, MUST_SIZE, MUST_BODY, MUST_LIVE = 0.400, 300_000, 0.150, 0.250
LIVE_COMMITS = 60


class Measured(NamedTuple):
    """One address, read several times: seconds and bytes."""

    first: float
    """The cold one: nothing of the run is known yet."""
    median: float
    worst: float
    cpu: float
    """Of the web process alone; the median also holds the database and who waits."""
    size: int


class Site(NamedTuple):
    """Where the pages are, and the session that opens them."""

    port: int
    pid: int
    cookie: str


def main() -> int:
    """Run the measurement; return the exit code."""
    parser = argparse.ArgumentParser(description="Measure the page of a long run.")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--port", type=int, default=18_791)
    request = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agentsite-bench-") as folder:
        os.environ["AGENTSITE_DATA"] = folder
        os.environ["AGENTSITE_LOG_LEVEL"] = "WARNING"
        os.environ["PORT"] = str(request.port)
        os.environ.setdefault("REDIS_URL", "redis://127.0.0.1:6379/15")
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
        python = [sys.executable, "manage.py", "migrate", "-v", "0"]
        subprocess.run(python, check=True)
        with server(request.port) as pid:
            return measure(request, pid)


@contextlib.contextmanager
def server(port: int) -> Iterator[int]:
    """Serve the site for as long as the block lasts; give the process."""
    command = [sys.executable, "-m", "uvicorn", "agentsite.asgi:application"]
    process = subprocess.Popen([*command, "--port", str(port), "--log-level", "error"])
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


def measure(request: argparse.Namespace, pid: int) -> int:
    """Fill the database, read, print; 1 where a target is missed."""
    import django  # noqa: PLC0415  # the settings need the environment set above

    django.setup()
    from tests.bench.loads.run_page_load import prepare  # noqa: PLC0415  # Django first

    done, running, cookie = prepare(request.steps)
    site = Site(request.port, pid, cookie)
    wait_for(site)
    middle, times = request.steps // 2, request.times
    pages = {
        "page": f"/runs/{done}/",
        "page, step in the middle": f"/runs/{done}/?step={middle}",
        "page, waterfall": f"/runs/{done}/?as=time",
        "page, errors": f"/runs/{done}/?show=errors",
        "page, search": f"/runs/{done}/?q=word+{middle}",
        "page, running": f"/runs/{running}/",
    }
    bodies = {
        f"step's body, {tab}": f"/runs/{done}/?step={middle}&tab={tab}"
        for tab in ("readable", "tool")
    }
    bodies |= {
        f"model call's body, {tab}": f"/runs/{done}/?step={middle // 3 * 3 + 1}"
        f"&tab={tab}"
        for tab in ("readable", "response", "prompt", "request")
    }
    misses = 0
    for name, path in pages.items():
        seen = read(site, path, times=times)
        is_good = seen.median <= MUST_FIRST_BYTE and seen.size <= MUST_SIZE
        misses += report(name, seen, is_good=is_good)
    for name, path in bodies.items():
        seen = read(site, path, times=times, is_part=True)
        misses += report(name, seen, is_good=seen.median <= MUST_BODY)
    delays = live_delays(site, running)
    late = delays[int(len(delays) * 0.95)]
    print(
        f"{'live, commit to viewer':30} p50 {delays[len(delays) // 2] * 1000:5.0f} ms "
        f" p95 {late * 1000:5.0f} ms"
    )
    return int(bool(misses) or late > MUST_LIVE)


def report(name: str, seen: Measured, *, is_good: bool) -> int:
    """Print one line; return 1 for a miss."""
    print(
        f"{name:30} first {seen.first * 1000:5.0f} ms  median "
        f"{seen.median * 1000:5.0f} ms  worst {seen.worst * 1000:5.0f} ms  CPU of "
        f"the web {seen.cpu * 1000:4.0f} ms "
        f"{seen.size / 1000:6.0f} kB{'' if is_good else '  MISSED'}"
    )
    return int(not is_good)


def read(site: Site, path: str, *, times: int, is_part: bool = False) -> Measured:
    """Read an address on one connection; the first, cold time counts apart."""
    headers = {"Cookie": site.cookie} | ({"HX-Request": "true"} if is_part else {})
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=120)
    taken, size, used = [], 0, 0.0
    for number in range(times + 1):
        if number == 1:
            used = cpu_of(site.pid)
        began = time.perf_counter()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        taken.append(time.perf_counter() - began)
        size = len(answer.read())
        assert answer.status == 200, (path, answer.status)
    connection.close()
    ordered = sorted(taken[1:])
    cpu = (cpu_of(site.pid) - used) / times
    return Measured(taken[0], ordered[len(ordered) // 2], ordered[-1], cpu, size)


def wait_for(site: Site) -> None:
    """Wait until the server answers."""
    for _ in range(600):
        try:
            read(site, "/healthz", times=1)
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("The server did not start within a minute.")


def live_delays(site: Site, run_id: int) -> list[float]:
    """Return the sorted seconds from each commit to a viewer's page."""
    from tests.bench.loads.run_page_load import (  # noqa: PLC0415  # Django first
        commit_round,
        seq_of,
    )

    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
    path = f"/live/runs/{run_id}/?after={seq_of(run_id)}"
    connection.request("GET", path, headers={"Cookie": site.cookie})
    stream = connection.getresponse()
    seen: dict[str, float] = {}
    listener = threading.Thread(target=listen, args=(stream, seen), daemon=True)
    listener.start()
    time.sleep(3)
    commits = {}
    for number in range(LIVE_COMMITS):
        mark = commit_round(run_id, number)
        commits[mark] = time.time()
        time.sleep(0.1)
    until = time.time() + 20
    while len(seen) < len(commits) and time.time() < until:
        time.sleep(0.05)
    connection.close()
    assert commits.keys() <= seen.keys(), f"{len(commits) - len(seen)} were not seen"
    return sorted(seen[mark] - at for mark, at in commits.items())


def listen(stream: Any, seen: dict[str, float]) -> None:
    """Note when each mark first arrives."""
    with contextlib.suppress(OSError, AttributeError):  # closed at the end
        note_marks(stream, seen)


def note_marks(stream: Any, seen: dict[str, float]) -> None:
    """Do the work of `listen`."""
    for line in stream:
        at = line.find(b"mark-of-")
        if at >= 0:
            seen.setdefault(line[at:].split(b".", 1)[0].decode(), time.time())


if __name__ == "__main__":
    sys.exit(main())
