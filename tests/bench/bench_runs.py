"""What a run costs, from the API through Celery into PostgreSQL, and back.

    python -m tests.bench.bench_runs [--rounds 6]

Starts everything it needs, PostgreSQL with fsync. CPU is all of web and worker; the web
takes the run by POST and gives the answer by one GET, and the end of a run is awaited
in the database. Replies are streamed. A step is one reply of the model with its tool
call, so that a run of K calls has K + 1. The floor is the same job in a plain loop in a
Celery worker (`reference_loop`), measured in turns with the product.

Times of one machine say nothing about another, nor about this one an hour later, so
most targets are ratios to the floor. Exits 1 if a measure misses what it must reach.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple

from tests.bench.servers.site import (
    SIDE_EFFECT,
    Site,
    cpu_of,
    memory_of,
    private_servers,
    running_site,
)

SEQUENTIAL = 25
"""Runs a round, one after another."""
AT_ONCE = 200
LONG = 6
WAITING = 75
"""Runs that wait in a worker, and so many more."""
K = 5


class Target(NamedTuple):
    must: float
    goal: float


CPU_STEP = Target(2.8, 2.0)
CPU_STEP_SIDE_EFFECT = Target(3.2, 2.3)
POSTGRES = Target(5, 3)
WALL_AT_ONCE = Target(2.4, 1.8)
CPU_RUN_AT_ONCE = Target(2.6, 2.0)
START = Target(25, 15)
GROWTH = Target(1.1, 0.8)
STORED = Target(110, 98)
STORED_WITH_INDEXES = Target(200, 150)
WAL = Target(500, 350)
WAITING_RUN = Target(0.15, 0.1)


class Measure(NamedTuple):
    """One line of the table."""

    name: str
    now: float
    target: Target | None = None
    note: str = ""

    @property
    def is_reached(self) -> bool:
        """Whether it is as good as it must be."""
        return self.target is None or self.now <= self.target.must

    def line(self) -> str:
        """Return the line as text."""
        must, goal = self.target or ("", "")
        verdict = ""
        if self.target is not None:
            verdict = "goal" if self.now <= self.target.goal else "ok"
        verdict = verdict if self.is_reached else "MISSED"
        text = f"{self.name:52}{must:>7}{goal:>7}{self.now:9.2f}  {verdict:7}"
        return f"{text} {self.note}".rstrip()


HEAD = f"{'measure':52}{'must':>7}{'goal':>7}{'now':>9}\n"


def main() -> int:
    """Measure, print the table, and say by the exit code whether all is reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    rounds = parser.parse_args().rounds
    with (
        private_servers() as servers,
        running_site(servers) as site,
        floor_of(site) as floor,
    ):
        found = [
            *steps_one_by_one(site, floor, rounds),
            *runs_at_once(site, floor, max(rounds // 2, 1)),
            *long_runs(site),
            *waiting_runs(site),
        ]
    lines = (f"{each.line()}\n" for each in found)
    sys.stdout.write(HEAD + "".join(lines))
    return 0 if all(each.is_reached for each in found) else 1


class Spent(NamedTuple):
    """What some runs took, in seconds."""

    cpu: float
    postgres: float
    wall: float
    starts: list[float]
    """From each submit to the first call of the model."""


class Floor(NamedTuple):
    """The loop by hand in processes of its own."""

    wishes: IO[str]
    answers: IO[str]

    def run(self, site: Site, model: str, *, runs: int, at_once: bool) -> Spent:
        """Do the job so many times."""
        site.first_calls()
        postgres = site.postgres_spent()
        request = {"model": model, "runs": runs, "at_once": at_once}
        self.wishes.write(json.dumps(request) + "\n")
        self.wishes.flush()
        found = json.loads(self.answers.readline())
        postgres = site.postgres_spent() - postgres
        starts = between(found["began"], site.first_calls())
        return Spent(found["cpu"], postgres, found["wall"], starts)


@contextmanager
def floor_of(site: Site) -> Iterator[Floor]:
    """Start the loop by hand beside the site; end it with the block."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.bench.servers.reference_loop",
            str(site.model_port),
        ],
        env={**os.environ, **site.env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdout.readline()  # it is warm
        yield Floor(process.stdin, process.stdout)
    finally:
        process.stdin.close()
        process.wait()


def by_product(site: Site, agent: str, *, runs: int, at_once: bool) -> Spent:
    """Do the job so many times with the product."""
    site.first_calls()
    cpu, postgres, start = site.spent(), site.postgres_spent(), time.monotonic()
    began = []
    wall = 0.0
    for waits in [runs] if at_once else [1] * runs:
        started = []
        for _ in range(waits):
            began.append(time.monotonic())
            started.append(site.start(agent))
        site.wait(started)
        wall = time.monotonic() - start
        for run in started:
            assert site.ask("GET", f"/api/v1/runs/{run}?steps=none")["output"]
    cpu, postgres = site.spent() - cpu, site.postgres_spent() - postgres
    return Spent(cpu, postgres, wall, between(began, site.first_calls()))


def between(began: list[float], arrived: list[float]) -> list[float]:
    """Return how long each first call took, for runs one after another."""
    return [late - early for early, late in zip(began, sorted(arrived), strict=True)]


class Rounds(NamedTuple):
    """The same runs of product and floor, in turns."""

    ours: list[Spent]
    floor: list[Spent]

    def ratio(self, kind: str) -> float:
        """Return the median of the product as a multiple of the floor's."""
        return self.middle(self.ours, kind) / self.middle(self.floor, kind)

    def middle(self, rounds: list[Spent], kind: str) -> float:
        return statistics.median(getattr(each, kind) for each in rounds)

    def note(self, kind: str, unit: str, share: float) -> str:
        """Return both medians, and the ratios of single rounds at their extremes."""
        ratios = [
            getattr(one, kind) / getattr(other, kind)
            for one, other in zip(self.ours, self.floor, strict=True)
        ]
        ours, floor = (share * self.middle(rounds, kind) for rounds in self)
        return (
            f"{ours:.2f} : {floor:.2f} {unit}, rounds {min(ratios):.2f}"
            f"-{max(ratios):.2f}"
        )


def steps_one_by_one(site: Site, floor: Floor, count: int) -> list[Measure]:
    """Run one after another: tools that read, the floor, tools with side effects."""
    reads, effects, web = Rounds([], []), Rounds([], []), 0.0
    model = "mock-k5-l0"
    for _ in range(count):
        web -= cpu_of(site.web)
        reads.ours.append(by_product(site, model, runs=SEQUENTIAL, at_once=False))
        web += cpu_of(site.web)
        floors = floor.run(site, model, runs=SEQUENTIAL, at_once=False)
        agent = f"{model}{SIDE_EFFECT}"
        effects.ours.append(by_product(site, agent, runs=SEQUENTIAL, at_once=False))
        reads.floor.append(floors)
        effects.floor.append(floors)
    steps, run = SEQUENTIAL * (K + 1), 1000 / SEQUENTIAL
    return [
        Measure(
            "CPU per step / floor, quick read tool",
            reads.ratio("cpu"),
            CPU_STEP,
            reads.note("cpu", "ms", 1000 / steps),
        ),
        Measure("  of that, ms of the web", 1000 * web / (count * steps)),
        Measure(
            "CPU per step / floor, tool with a side effect",
            effects.ratio("cpu"),
            CPU_STEP_SIDE_EFFECT,
            effects.note("cpu", "ms", 1000 / steps),
        ),
        Measure(
            "PostgreSQL's CPU per run / floor, read tool",
            reads.ratio("postgres"),
            POSTGRES,
            reads.note("postgres", "ms", run),
        ),
        Measure(
            "PostgreSQL's CPU per run / floor, side effect",
            effects.ratio("postgres"),
            None,
            effects.note("postgres", "ms", run),
        ),
        Measure("ms from submit to the first model call, p95", p95(reads.ours), START),
    ]


def runs_at_once(site: Site, floor: Floor, count: int) -> list[Measure]:
    """Submit 200 runs together; the model takes 100 ms a call."""
    rounds, model = Rounds([], []), "mock-k5-l100"
    for _ in range(count):
        rounds.ours.append(by_product(site, model, runs=AT_ONCE, at_once=True))
        rounds.floor.append(floor.run(site, model, runs=AT_ONCE, at_once=True))
    return [
        Measure(
            "wall of 200 runs at once, 100 ms model / floor",
            rounds.ratio("wall"),
            WALL_AT_ONCE,
            rounds.note("wall", "s", 1),
        ),
        Measure(
            "CPU per run of 200 at once / floor",
            rounds.ratio("cpu"),
            CPU_RUN_AT_ONCE,
            rounds.note("cpu", "ms", 1000 / AT_ONCE),
        ),
    ]


def p95(rounds: list[Spent]) -> float:
    """Return the milliseconds that 95 of 100 starts stay below."""
    starts = sorted(start for each in rounds for start in each.starts)
    return 1000 * starts[int(len(starts) * 0.95)]


def long_runs(site: Site) -> list[Measure]:
    """Compare a step of long runs with one of shorter ones, and weigh long ones."""
    short, _ = cpu_a_step(site, 20, LONG * 10)
    size, wal = site.table_bytes(), site.wal_bytes()
    long, run = cpu_a_step(site, 200, LONG)
    size, wal = site.table_bytes() - size, site.wal_bytes() - wal
    return [
        Measure("CPU per step at K=200 / K=20", long / short, GROWTH),
        Measure("KB stored per run at K=200, texts apart", weight(site, run), STORED),
        Measure(
            "KB of tables and indexes per run at K=200",
            size / LONG / 1000,
            STORED_WITH_INDEXES,
        ),
        Measure("KB of WAL per run at K=200", wal / LONG / 1000, WAL),
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


def waiting_runs(site: Site) -> list[Measure]:
    """Weigh runs that wait for a slow model, above as many that already do."""
    site.first_calls()
    runs, sizes = list[int](), list[float]()
    for _ in range(2):
        runs += [site.start("mock-k0-l15000") for _ in range(WAITING)]
        arrived, until = list[float](), time.monotonic() + 10
        while len(arrived) < WAITING:
            assert time.monotonic() < until, "The runs do not wait at the same time."
            time.sleep(0.1)
            arrived += site.first_calls()
        time.sleep(0.5)
        sizes.append(memory_of(site.worker))
    site.wait(runs)
    more = (sizes[1] - sizes[0]) / WAITING
    return [Measure("MB of one more run that waits for its model", more, WAITING_RUN)]


if __name__ == "__main__":
    sys.exit(main())
