"""Run every test on SQLite and on a private PostgreSQL: `python -m tests.run`."""

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.postgres import find_initdb, postgresql

ROOT = Path(__file__).parent.parent
SLOW = "faults or browser"
SEED = os.environ.get("SEED", "1")
"""Of the order of the tests: the same each time, so that a failure comes again."""
ONCE = [
    "tests/browser/test_accessibility.py",  # these look at how pages are drawn and read
    "tests/browser/test_agent_pages.py",
    "tests/browser/test_every_page.py",
    "tests/browser/test_pages.py",
    "tests/browser/test_playground.py",
    "tests/browser/test_run_reading.py",
    "tests/browser/test_tool_admin.py",
    "tests/faults/test_soak.py",  # these two start servers of their own
    "tests/faults/test_supervise.py",
]
"""Slow tests that no database can change: SQLite is enough."""
WITH_POSTGRESQL = ["tests/tools/test_borrowed_connection.py"]
"""What there is in PostgreSQL alone."""


class Result(NamedTuple):
    """The counts of one pytest run."""

    title: str
    passed: int
    failed: int
    skipped: int
    seconds: float


def main() -> int:
    """Run all; the last lines are a summary."""
    results = run_twice("SQLite", url="", quick="", ignored=WITH_POSTGRESQL)
    initdb = find_initdb()
    if initdb is not None:
        with postgresql(initdb) as server:
            results += run_twice(
                "PostgreSQL", url=server.url, quick="database and ", ignored=ONCE
            )
    print("\n=== Summary")
    for each in results:
        print(
            f"{each.title:24} {each.passed:5} passed {each.failed:3} failed "
            f"{each.skipped:3} skipped {each.seconds:6.0f} s"
        )
    if initdb is None:
        print("PostgreSQL was not found, so only half of this ran: install postgresql.")
    bad = sum(each.failed + each.skipped for each in results)
    print("All passed." if not bad else f"{bad} tests failed or were skipped.")
    return 1 if bad else 0


def run_twice(title: str, *, url: str, quick: str, ignored: list[str]) -> list[Result]:
    """Run the quick tests side by side, then the slow ones alone.

    `quick` says which of the quick ones; empty for all.
    """
    options = [f"--ignore={path}" for path in ignored]
    return [
        run(title, ["-m", f"{quick}not ({SLOW})", "-n", "2", *options], url=url),
        run(f"{title}, slow", ["-m", SLOW, *options], url=url),
    ]


def run(title: str, options: list[str], *, url: str) -> Result:
    """Run pytest once; what it prints is shown as it comes."""
    print(f"\n=== {title}, in the order of seed {SEED}", flush=True)
    environment = {**os.environ, "DATABASE_URL": url}
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        code = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-rs", f"--junitxml={report}"]
            + [f"--randomly-seed={SEED}", *options, *sys.argv[1:]],
            cwd=ROOT,
            env=environment,
        ).returncode
        return read(title, report, code, time.monotonic() - started)


def read(title: str, report: Path, code: int, seconds: float) -> Result:
    """Count what the report says; a run that ended badly counts as a failure."""
    if code == pytest.ExitCode.NO_TESTS_COLLECTED:
        return Result(title, 0, 0, 0, seconds)
    if not report.exists():
        return Result(title, 0, 1, 0, seconds)
    suite = ET.parse(report).getroot().find("testsuite")
    count = {} if suite is None else suite.attrib
    total, skipped = int(count.get("tests", 0)), int(count.get("skipped", 0))
    failed = int(count.get("failures", 0)) + int(count.get("errors", 0))
    failed = max(failed, int(code != 0))
    return Result(title, max(total - failed - skipped, 0), failed, skipped, seconds)


if __name__ == "__main__":
    sys.exit(main())
