"""What a run costs, from the API through Celery into PostgreSQL, and back.

    python -m tests.bench.bench_runs

Starts everything it needs, PostgreSQL with fsync. CPU is all of web and worker; the web
takes the run by POST and gives the answer by one GET. A step is one reply of the model
with its tool call, so that a run of K calls has K + 1. The column `by hand` is the same
job in a plain loop in a Celery worker (`reference_loop`), measured in turns with ours.

Times of one machine say nothing about another, nor about this one an hour later. So
what must be reached is a ratio: as many times the loop by hand as the target is of the
loop by hand on the machine of the target. Exits 1 where a measure misses that.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple

from tests.bench.site import Site, cpu_of, private_servers, running_site

ROUNDS = 4
SEQUENTIAL = 25
"""Runs a round, one after another."""
AT_ONCE = 200
ROUNDS_AT_ONCE = 2
LONG = 6
K = 5


class Target(NamedTuple):
    """A target as it was set, beside what the loop by hand took there."""

    must: float
    goal: float
    by_hand: float = 1.0


CPU_STEP = Target(2.4, 1.1, 0.66)
WALL_AT_ONCE = Target(3.0, 1.6, 1.13)
CPU_RUN_AT_ONCE = Target(14, 7, 3.6)
START = Target(60, 25, 2.4)
GROWTH = Target(2, 1.3)
STORED = Target(340, 110)


class Measure(NamedTuple):
    """One line of the table."""

    name: str
    found: float
    by_hand: float | None = None
    target: Target | None = None

    @property
    def share(self) -> float:
        """What is compared with the target: the ratio, or the figure itself."""
        return self.found / self.by_hand if self.by_hand else self.found

    @property
    def is_reached(self) -> bool:
        """Whether it is as good as it must be."""
        target = self.target
        return target is None or self.share <= target.must / target.by_hand

    def line(self) -> str:
        """Return the line as text."""
        text = f"{self.name:50}{self.found:9.2f}"
        text += f"{self.by_hand:9.2f}{self.share:8.2f}" if self.by_hand else " " * 17
        if self.target is None:
            return text
        must, goal, by_hand = self.target
        text += f"{must / by_hand:8.4g}{goal / by_hand:8.3g}"
        if self.share <= goal / by_hand:
            return f"{text}  goal reached"
        return text if self.is_reached else f"{text}  MISSED"


HEAD = (
    "Musts and goals are ratios to the loop by hand, where there is one: on the\n"
    "machine of the targets it took 0.66 ms a step, 1.13 s, 3.6 ms a run.\n\n"
    f"{'measure':50}{'found':>9}{'by hand':>9}{'ratio':>8}{'must':>8}{'goal':>8}\n"
)


def main() -> int:
    """Measure, print the table, and say by the exit code whether all is reached."""
    with (
        private_servers() as servers,
        running_site(servers) as site,
        loop_by_hand(site) as hand,
    ):
        found = [
            *steps_one_by_one(site, hand),
            *runs_at_once(site, hand),
            *long_runs(site),
        ]
    lines = (f"{each.line()}\n" for each in found)
    sys.stdout.write(HEAD + "".join(lines))
    return 0 if all(each.is_reached for each in found) else 1


class Spent(NamedTuple):
    """What some runs took, in seconds."""

    cpu: float
    wall: float
    starts: list[float]
    """From each submit to the first call of the model."""


class Hand(NamedTuple):
    """The loop by hand in processes of its own."""

    wishes: IO[str]
    answers: IO[str]

    def run(self, site: Site, model: str, *, runs: int, at_once: bool) -> Spent:
        """Do the job so many times."""
        site.first_calls()
        wish = {"model": model, "runs": runs, "at_once": at_once}
        self.wishes.write(json.dumps(wish) + "\n")
        self.wishes.flush()
        found = json.loads(self.answers.readline())
        starts = between(found["began"], site.first_calls())
        return Spent(found["cpu"], found["wall"], starts)


@contextmanager
def loop_by_hand(site: Site) -> Iterator[Hand]:
    """Start the loop by hand beside the site; end it with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.reference_loop", str(site.model_port)],
        env={**os.environ, **site.env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdout.readline()  # it is warm
        yield Hand(process.stdin, process.stdout)
    finally:
        process.stdin.close()
        process.wait()


def by_product(site: Site, model: str, *, runs: int, at_once: bool) -> Spent:
    """Do the job so many times with the product."""
    site.first_calls()
    cpu, start = site.spent(), time.monotonic()
    began = []
    wall = 0.0
    for waits in [runs] if at_once else [1] * runs:
        started = []
        for _ in range(waits):
            began.append(time.monotonic())
            started.append(site.start(model))
        site.wait(started)
        wall = time.monotonic() - start
        for run in started:
            assert site.ask("GET", f"/api/v1/runs/{run}?steps=none")["output"]
    return Spent(site.spent() - cpu, wall, between(began, site.first_calls()))


def between(began: list[float], arrived: list[float]) -> list[float]:
    """Return how long each first call took, for runs one after another."""
    return [late - early for early, late in zip(began, sorted(arrived), strict=True)]


def steps_one_by_one(site: Site, hand: Hand) -> list[Measure]:
    """Run one after another, in turns with the loop by hand."""
    ours, theirs, web = list[Spent](), list[Spent](), 0.0
    for _ in range(ROUNDS):
        web -= cpu_of(site.web)
        ours.append(by_product(site, "mock-k5-l0", runs=SEQUENTIAL, at_once=False))
        web += cpu_of(site.web)
        theirs.append(hand.run(site, "mock-k5-l0", runs=SEQUENTIAL, at_once=False))
    steps = SEQUENTIAL * (K + 1)
    return [
        Measure(
            "CPU ms a step, web and worker, K=5, one by one",
            1000 * median_cpu(ours) / steps,
            1000 * median_cpu(theirs) / steps,
            CPU_STEP,
        ),
        Measure("  of that, the web's", 1000 * web / (ROUNDS * steps)),
        Measure(
            "ms from submit to the first model call, p95",
            1000 * p95(ours),
            1000 * p95(theirs),
            START,
        ),
    ]


def runs_at_once(site: Site, hand: Hand) -> list[Measure]:
    """Submit 200 runs together; the model takes 100 ms a call."""
    ours, theirs = list[Spent](), list[Spent]()
    for _ in range(ROUNDS_AT_ONCE):
        ours.append(by_product(site, "mock-k5-l100", runs=AT_ONCE, at_once=True))
        theirs.append(hand.run(site, "mock-k5-l100", runs=AT_ONCE, at_once=True))
    return [
        Measure(
            "s for 200 runs at once, 100 ms model",
            statistics.median(each.wall for each in ours),
            statistics.median(each.wall for each in theirs),
            WALL_AT_ONCE,
        ),
        Measure(
            "CPU ms a run, web and worker, at 200 at once",
            1000 * median_cpu(ours) / AT_ONCE,
            1000 * median_cpu(theirs) / AT_ONCE,
            CPU_RUN_AT_ONCE,
        ),
    ]


def median_cpu(rounds: list[Spent]) -> float:
    """Return the CPU seconds of the round in the middle."""
    return statistics.median(each.cpu for each in rounds)


def p95(rounds: list[Spent]) -> float:
    """Return what 95 of 100 starts stay below."""
    starts = sorted(start for each in rounds for start in each.starts)
    return starts[int(len(starts) * 0.95)]


def long_runs(site: Site) -> list[Measure]:
    """Compare a step of long runs with one of shorter ones, and weigh a long one."""
    short, _ = cpu_a_step(site, 20, LONG * 10)
    long, run = cpu_a_step(site, 200, LONG)
    return [
        Measure("CPU a step at K=200 divided by K=20", long / short, None, GROWTH),
        Measure(
            "KB stored a run at K=200, texts apart", weight(site, run), None, STORED
        ),
    ]


def cpu_a_step(site: Site, calls: int, runs: int) -> tuple[float, int]:
    """Return the CPU seconds of a step, and the last run."""
    cpu, run = site.spent(), 0
    for _ in range(runs):
        run = site.start(f"mock-k{calls}-l0")
        site.wait([run])
    return (site.spent() - cpu) / (runs * (calls + 1)), run


def weight(site: Site, run: int) -> float:
    """Return the KB of a run's rows without its replies and observations."""
    total = 0
    for query in (
        "SELECT sum(pg_column_size(r)) FROM runs_run r WHERE id = %s",
        "SELECT sum(pg_column_size(c) - pg_column_size(c.reply))"
        " FROM runs_modelcall c WHERE run_id = %s",
        "SELECT sum(pg_column_size(s) - pg_column_size(s.observation))"
        " FROM runs_agentstep s WHERE run_id = %s",
    ):
        row = site.database.execute(query, [run]).fetchone()
        total += int(row[0]) if row else 0
    return total / 1000


if __name__ == "__main__":
    sys.exit(main())
