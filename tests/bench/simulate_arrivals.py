"""How an installation bears many runs: `python -m tests.bench.simulate_arrivals`.

Runs arrive at random (Poisson), take a slot of a worker, and alternate between the
model and the worker's core. What each of that costs is measured by the other modules
of this folder, and given as options. Everything random comes from `--seed`, so the same
command prints the same figures. Nothing is started and nothing is measured here.
"""

import argparse
import heapq
import random
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

ACTIVE_RUNS = 50
WEB_CONNECTIONS, WORKER_CONNECTIONS = 20, 12
HEARTBEAT_SECONDS = 10.0


@dataclass(frozen=True)
class Costs:
    """What was measured, in seconds of CPU and in MB."""

    worker_call: float = 0.0065
    """The worker's CPU per model call, with claim and end (bench_scale)."""
    web_run: float = 0.0086
    """The web server's CPU per run: 6 steps of 1.43 ms (bench_runs)."""
    postgres_call: float = 0.0017
    """PostgreSQL's CPU per call: 10.3 ms for 6 (bench_runs)."""
    postgres_heartbeat: float = 35e-6
    """Per running run and heartbeat (bench_scale)."""
    postgres_check: float = 1.6e-6
    """Per running run and check for cancels, once per second (bench_scale)."""
    worker_mb: float = 105.0
    waiting_run_mb: float = 0.126


@dataclass(frozen=True)
class Load:
    """What arrives, and what is there for it."""

    at_once: int
    calls: int
    model_seconds: float
    workers: int
    threads: int


class Worker:
    """One process: one core, and slots that grow with the runs that wait."""

    def __init__(self, threads: int) -> None:
        self.threads, self.running, self.waiting = threads, 0, 0
        self.free_at = 0.0

    def has_slot(self) -> bool:
        return self.running < min(self.threads, ACTIVE_RUNS + self.waiting)

    def compute(self, now: float, seconds: float) -> float:
        """Use the core after whoever uses it now; return when that is done."""
        self.free_at = max(self.free_at, now) + seconds
        return self.free_at


class Simulation:
    """Events in the order of their times."""

    def __init__(self, load: Load, costs: Costs, seed: int) -> None:
        self.load, self.costs = load, costs
        self.random = random.Random(seed)
        self.workers = [Worker(load.threads) for _ in range(load.workers)]
        self.queue = deque[float]()
        self.events: list[tuple[float, int, Callable[[float], None]]] = []
        self.count = 0
        self.waits: list[float] = []
        self.running = self.most_running = 0
        self.delays: list[float] = []
        """How much longer runs took than their model."""

    def run(self, seconds: float) -> None:
        """Let runs arrive for that long, after as long a time to warm up."""
        rate = self.load.at_once / (self.load.calls * self.load.model_seconds)
        now = 0.0
        while now < 2 * seconds:
            now += self.random.expovariate(rate)
            self.at(now, self.arrive)
        while self.events:
            now, _, event = heapq.heappop(self.events)
            if now > 2 * seconds:
                break
            event(now)
            if now < seconds:
                self.waits.clear()
                self.delays.clear()

    def at(self, when: float, event: Callable[[float], None]) -> None:
        self.count += 1
        heapq.heappush(self.events, (when, self.count, event))

    def arrive(self, now: float) -> None:
        self.queue.append(now)
        self.start_runs(now)

    def start_runs(self, now: float) -> None:
        """Give queued runs to workers with a free slot, the least busy one first."""
        while self.queue:
            worker = min(self.workers, key=lambda each: (each.free_at, each.running))
            if not worker.has_slot():
                free = [each for each in self.workers if each.has_slot()]
                if not free:
                    return
                worker = free[0]
            arrived = self.queue.popleft()
            self.waits.append(now - arrived)
            worker.running += 1
            self.running += 1
            self.most_running = max(self.most_running, self.running)
            self.call(now, worker, arrived, self.load.calls, 0.0)

    def call(
        self, now: float, worker: Worker, arrived: float, left: int, waited: float
    ) -> None:
        """Use the core for one model call, then wait for the model."""
        done = worker.compute(now, self.costs.worker_call)
        model = self.random.gammavariate(4, self.load.model_seconds / 4)

        def send(when: float) -> None:
            worker.waiting += 1
            self.at(when + model, reply)
            self.start_runs(when)

        def reply(when: float) -> None:
            worker.waiting -= 1
            if left > 1:
                self.call(when, worker, arrived, left - 1, waited + model)
                return
            worker.running -= 1
            self.running -= 1
            self.delays.append(when - arrived - waited - model)
            self.start_runs(when)

        self.at(done, send)


def main() -> int:
    """Simulate each number of concurrent runs and print what it needs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at-once", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--calls", type=int, default=4)
    parser.add_argument("--model-seconds", type=float, default=30.0)
    parser.add_argument("--threads", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--busy", type=float, default=0.7, help="share of each core")
    parser.add_argument("--seed", type=int, default=1)
    for name, value in vars(Costs()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, default=value)
    given = parser.parse_args()
    costs = Costs(**{name: getattr(given, name) for name in vars(Costs())})
    for number in given.at_once:
        load = size(number, given, costs)
        simulation = Simulation(load, costs, given.seed)
        simulation.run(given.seconds)
        sys.stdout.write(describe(simulation) + "\n")
    return 0


def size(at_once: int, given: argparse.Namespace, costs: Costs) -> Load:
    """Return the load with as many workers as its threads and its CPU need."""
    calls_per_second = at_once / given.model_seconds
    by_cpu = calls_per_second * costs.worker_call / given.busy
    by_threads = 1.2 * at_once / given.threads
    workers = max(1, ceil(by_cpu), ceil(by_threads))
    return Load(at_once, given.calls, given.model_seconds, workers, given.threads)


def describe(simulation: Simulation) -> str:
    """Return what the load needs, and how long its runs waited."""
    load, costs = simulation.load, simulation.costs
    calls = load.at_once / load.model_seconds
    runs = calls / load.calls
    web = ceil(runs * costs.web_run / 0.7)
    beats = costs.postgres_heartbeat / HEARTBEAT_SECONDS + costs.postgres_check
    work, idle = calls * costs.postgres_call, load.at_once * beats
    each = costs.worker_mb + costs.waiting_run_mb * load.at_once / load.workers
    return "\n".join(
        [
            f"{load.at_once:,} runs at once: {runs:.1f} runs/s, {calls:.0f} calls/s",
            f"  workers      {load.workers}, {each:,.0f} MB each, "
            f"{calls * costs.worker_call:.1f} cores",
            f"  web servers  {web}, {runs * costs.web_run:.1f} cores",
            f"  PostgreSQL   {work + idle:.1f} cores: {work:.1f} for calls, {idle:.1f} "
            f"for heartbeats; {calls:.0f} commits/s; at most "
            f"{load.workers * WORKER_CONNECTIONS + web * WEB_CONNECTIONS} connections",
            f"  simulated    {simulation.most_running:,} at once at most; wait for a "
            f"slot p50 {percentile(simulation.waits, 0.5):.3f} s, p99 "
            f"{percentile(simulation.waits, 0.99):.3f} s; delay of a run by the "
            f"workers p50 {percentile(simulation.delays, 0.5):.2f} s, p99 "
            f"{percentile(simulation.delays, 0.99):.2f} s",
        ]
    )


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[int(len(values) * share)] if values else 0.0


if __name__ == "__main__":
    sys.exit(main())
