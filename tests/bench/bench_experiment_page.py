"""Measure the page of an experiment of 10,000 examples by two candidates.

    python -m tests.bench.bench_experiment_page [--examples 10000] [--times 15]

Serves the database that the environment names, like `bench_run_page`, and reads the
page, its filters and its orders over HTTP. Exits 1 where one is above its target.
"""

import argparse
import os
import subprocess
import sys
import tempfile

from tests.bench.bench_run_page import MUST_FIRST_BYTE, Site, read, report, server
from tests.bench.bench_run_page import wait_for as wait_until_served


def main() -> int:
    """Run the measurement; return the exit code."""
    parser = argparse.ArgumentParser(description="Measure the page of an experiment.")
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--port", type=int, default=18_792)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agentsite-bench-") as folder:
        os.environ["AGENTSITE_DATA"] = folder
        os.environ["AGENTSITE_LOG_LEVEL"] = "WARNING"
        os.environ["PORT"] = str(asked.port)
        os.environ.setdefault("REDIS_URL", "redis://127.0.0.1:6379/15")
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
        subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], check=True)
        with server(asked.port) as pid:
            return measure(asked, pid)


def measure(asked: argparse.Namespace, pid: int) -> int:
    """Fill the database, read, print; 1 where a target is missed."""
    import django  # noqa: PLC0415  # the settings need the environment set above

    django.setup()
    from tests.bench.loads.experiment_load import prepare  # noqa: PLC0415  # Django first

    number, cookie = prepare(asked.examples)
    site = Site(asked.port, pid, cookie)
    wait_until_served(site)
    path = f"/experiments/{number}/"
    pages = {
        "page": path,
        "page, the middle": f"{path}?from={asked.examples // 2}",
        "page, worse": f"{path}?show=worse",
        "page, failed": f"{path}?show=failed",
        "page, tools differ": f"{path}?show=tools",
        "page, by cost": f"{path}?sort=cost",
        "page, by time": f"{path}?sort=time",
    }
    misses = 0
    for name, address in pages.items():
        seen = read(site, address, times=asked.times)
        misses += report(name, seen, is_good=seen.median <= MUST_FIRST_BYTE)
    return int(bool(misses))


if __name__ == "__main__":
    sys.exit(main())
