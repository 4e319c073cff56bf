"""Every measurement, one after another: `python -m tests.bench`, or `make bench`."""

import os
import subprocess
import sys

from tests.bench.servers.site import private_servers

ALONE = [
    "tests.bench.bench_engine",
    "tests.bench.bench_tool_calls",
    "tests.bench.bench_runs",
    "tests.bench.bench_lists",
    "tests.bench.bench_experiments",
    "tests.bench.bench_start",
    "tests.bench.bench_limits",
]
MANY = "--viewers 500 --rate 20 --p99 100 --mb 150"
ON_SERVERS = [
    "tests.bench.bench_live",
    f"tests.bench.bench_live {MANY}",
    "tests.bench.bench_run_page",
    "tests.bench.bench_experiment_page",
]
"""They measure on the database and the broker that the environment names."""


def main() -> int:
    """Return 1 where any of them misses its target."""
    codes = [measure(module, {}) for module in ALONE]
    with private_servers() as servers:
        codes += [measure(module, servers) for module in ON_SERVERS]
    return int(any(codes))


def measure(module: str, more: dict[str, str]) -> int:
    """Run one module, its options behind its name; what it prints is shown."""
    sys.stdout.write(f"\n=== {module}\n")
    sys.stdout.flush()
    command = [sys.executable, "-m", *module.split()]
    return subprocess.run(command, env={**os.environ, **more}).returncode


if __name__ == "__main__":
    sys.exit(main())
