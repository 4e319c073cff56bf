"""Many runs while everything breaks: `make soak SEED=1 RUNS=300 DATABASE=postgresql`.

A real installation (PostgreSQL with fsync, or SQLite; Redis, web, two workers) is given
runs by its API while its parts and its model server are killed, frozen, wiped and
restarted in an order that depends on the seed alone. Afterwards every row and every
line that the tools left is judged. The last line is
`runs=N faults=N violations=N recovery_p99=S`; the exit code is 1 where anything was
violated.
"""

import argparse
import importlib
import os
import sys
import tempfile
from pathlib import Path

import django

from tests.soak.machines import machines
from tests.soak.model import Planner


def main() -> int:
    """Soak once; return 1 where anything was violated."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument(
        "--database", choices=["postgresql", "sqlite"], default="postgresql"
    )
    asked = parser.parse_args()
    planner = Planner(asked.seed)
    with (
        tempfile.TemporaryDirectory(prefix="agentsite-soak-") as folder,
        machines(Path(folder), planner, sqlite=asked.database == "sqlite") as found,
    ):
        os.environ.update(found.env)
        django.setup()  # only now is it known where the database is
        driver = importlib.import_module("tests.soak.driver")
        return int(driver.soak(found, planner, runs=asked.runs))


if __name__ == "__main__":
    sys.exit(main())
