"""Run the tests on PostgreSQL and SQLite: `python -m tests.run [--all] [options]`."""

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.postgres import find_initdb, postgresql

ROOT = Path(__file__).parent.parent
SEED = os.environ.get("SEED", "1")
"""Fixes the order of the tests, so that a failure can be repeated."""
BROWSER, FAULTS = "tests/browser", "tests/faults"
"""Slow, and never in one process: Playwright leaves an event loop running."""
ON_SQLITE_TOO = [
    "tests/agentsite/test_settings.py",
    "tests/agentsite/test_threaded.py",
    "tests/live/test_hub.py",
    "tests/models",
    "tests/services/approvals/test_answer.py",
    "tests/services/conversations",
    "tests/services/forks",
    "tests/services/health",
    "tests/services/runs",
    "tests/services/schedules/test_fire.py",
    "tests/services/search",
    "tests/services/test_bootstrap.py",
    "tests/services/webhooks/test_deliver.py",
    "tests/store",
    "tests/tools/sql",
    "tests/views/run_list",
    "tests/views/test_health.py",
    "tests/worker/call_agents/test_call_agents_at_once.py",
    "tests/worker/test_execute_run.py",
    "tests/worker/test_sweep.py",
]
"""Quick tests of SQL, locks, JSON, dates and commits; the others run once."""
ONLY_SQLITE = [
    "tests/browser/pages/test_accessibility.py",
    "tests/browser/agents/test_agent_pages.py",
    "tests/browser/test_clicks.py",
    "tests/browser/pages/test_every_page.py",
    "tests/browser/test_newcomer.py",
    "tests/browser/pages/test_pages.py",
    "tests/browser/test_playground.py",
    "tests/browser/runs/test_run_reading.py",
    "tests/browser/tools/test_tool_admin.py",
    "tests/faults/test_soak.py",
    "tests/faults/installation/test_supervise.py",
    "tests/faults/installation/test_wheel.py",
]
"""Tests in a browser or of faults that no database can change, or need SQLite."""
ON_BOTH = [
    "tests/faults/worker/test_kill_points.py",
    "tests/faults/test_model_outage.py::test_all_runs_in_flight_survive_an_outage",
]
SELDOM_ON_SQLITE = [
    "tests/services/conversations",
    "tests/services/forks",
    "tests/services/health",
    "tests/services/runs",
    "tests/services/test_bootstrap.py",
    "tests/views/run_list",
]
"""Repeated on SQLite with `--all` only; PostgreSQL always runs them."""
ONLY_POSTGRESQL = ["tests/tools/sql/test_borrowed_connection.py"]


class Part(NamedTuple):
    """One run of pytest: what it is called, and its arguments."""

    title: str
    database: str
    """Name of a PostgreSQL database to be created; empty for SQLite."""
    arguments: list[str]


class Result(NamedTuple):
    """The counts of one pytest run."""

    title: str
    passed: int
    failed: int
    skipped: int
    seconds: float


def main() -> int:
    """Run all parts; the last lines are a summary."""
    is_all = "--all" in sys.argv
    if is_all:
        sys.argv.remove("--all")  # the others are for pytest
    else:
        sys.argv[1:1] = ["-m", "not slow"]  # before a choice of the caller, which wins
    left_out = [] if is_all else SELDOM_ON_SQLITE
    started = time.monotonic()
    initdb = find_initdb()
    if initdb is None:
        results = run_all(only_sqlite(), server="")
    else:
        with postgresql(initdb) as server:
            results = run_all(on_both(left_out), server=server.url.rpartition("/")[0])
    print("\n=== Summary")
    for each in results:
        print(
            f"{each.title:24} {each.passed:5} passed {each.failed:3} failed "
            f"{each.skipped:3} skipped {each.seconds:6.0f} s"
        )
    if not is_all:
        print("Slow tests were left out: `make test-all`.")
    if initdb is None:
        print("PostgreSQL was not found; only SQLite was tested. Install postgresql.")
    bad = sum(each.failed + each.skipped for each in results)
    print("All passed" if not bad else f"{bad} tests failed or were skipped", end="")
    print(f" in {time.monotonic() - started:.0f} s.")
    return 1 if bad else 0


def on_both(left_out: list[str]) -> list[list[Part]]:
    """Return lanes, which run at the same time; a lane's parts run in order.

    Tests of faults mostly wait; the other lanes use the processors meanwhile.
    """
    on_sqlite = [path for path in ON_SQLITE_TOO if path not in left_out]
    on_postgresql = ignore(ONLY_SQLITE)
    browser = [path for path in ONLY_SQLITE if path.startswith(BROWSER)]
    faults = [path for path in ONLY_SQLITE if path.startswith(FAULTS)]
    quick = ["tests", *ignore([BROWSER, FAULTS]), *by_file(2)]
    return [
        [
            Part("PostgreSQL, faults", "faults", [FAULTS, *on_postgresql, *waiting(2)]),
            Part("SQLite, faults", "", [*faults, *ON_BOTH, *waiting(2)]),
        ],
        [
            Part("PostgreSQL, browser", "browser", [BROWSER, *on_postgresql]),
            Part("SQLite, browser", "", [*browser, *by_file(2)]),
        ],
        [
            Part("PostgreSQL", "quick", quick),
            Part("SQLite", "", [*on_sqlite, *ignore(ONLY_POSTGRESQL)]),
        ],
    ]


def only_sqlite() -> list[list[Part]]:
    """Return the lanes for a machine without PostgreSQL."""
    ignored = ignore([BROWSER, FAULTS, *ONLY_POSTGRESQL])
    return [
        [Part("SQLite, faults", "", [FAULTS, *waiting(2)])],
        [
            Part("SQLite", "", ["tests", *ignored, *by_file(2)]),
            Part("SQLite, browser", "", [BROWSER, *by_file(2)]),
        ],
    ]


def ignore(paths: list[str]) -> list[str]:
    return [f"--ignore={path}" for path in paths]


def waiting(workers: int) -> list[str]:
    """Run tests that mostly wait in some processes, which take what is left."""
    return ["-n", str(workers), "--dist", "worksteal"]


def by_file(workers: int) -> list[str]:
    """Give each worker whole files, so that what a file shares is made once."""
    return ["-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder"]


def run_all(lanes: list[list[Part]], *, server: str) -> list[Result]:
    """Run the lanes at the same time."""

    def run_lane(parts: list[Part]) -> list[Result]:
        return [run(part, server=server) for part in parts]

    with ThreadPoolExecutor(len(lanes)) as threads:
        return list(chain.from_iterable(threads.map(run_lane, lanes)))


def run(part: Part, *, server: str) -> Result:
    """Run pytest once, and print what it said at its end."""
    url = f"{server}/{part.database}" if part.database else ""
    environment = {**os.environ, "DATABASE_URL": url}
    # hundreds of processes start: each would compile the whole product
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report, output = Path(folder, "report.xml"), Path(folder, "output")
        with output.open("wb") as out:
            code = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-rs", f"--junitxml={report}"]
                + [f"--randomly-seed={SEED}", *part.arguments, *sys.argv[1:]],
                cwd=ROOT,
                env=environment,
                stdout=out,
                stderr=subprocess.STDOUT,
            ).returncode
        text = output.read_text(errors="replace")
        print(f"\n=== {part.title}, seed {SEED}\n{text}", flush=True)
        return count(part.title, report, code, time.monotonic() - started)


def count(title: str, report: Path, code: int, seconds: float) -> Result:
    """Count what the report says; a run that ended badly counts as a failure."""
    if code == pytest.ExitCode.NO_TESTS_COLLECTED:
        return Result(title, 0, 0, 0, seconds)
    if not report.exists():
        return Result(title, 0, 1, 0, seconds)
    suite = ET.parse(report).getroot().find("testsuite")
    found = {} if suite is None else suite.attrib
    total, skipped = int(found.get("tests", 0)), int(found.get("skipped", 0))
    failed = int(found.get("failures", 0)) + int(found.get("errors", 0))
    failed = max(failed, int(code != 0))
    return Result(title, max(total - failed - skipped, 0), failed, skipped, seconds)


if __name__ == "__main__":
    sys.exit(main())
