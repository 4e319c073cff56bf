"""What runs that wait for a slow model cost: `python -m tests.bench.bench_scale`.

One worker holds up to 1,000 runs that wait on a model for 30 seconds; then four
workers share as many. Prints the worker's memory, threads and CPU, and the connections
to PostgreSQL, beside what they must stay below.
"""

import argparse
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from tests.bench.bench_runs import HEAD, Measure, Target
from tests.bench.servers.site import (
    ROOT,
    WORKER,
    Site,
    cpu_of,
    memory_of,
    private_servers,
    run,
    running_site,
    start,
)

SLOW = "mock-k0-l30000"
START_RUNS = """
import sys, django
django.setup()
from django.contrib.auth.models import User
from runs.models import Agent
from runs.services.runs.start import start_run
agent, user = Agent.objects.get(slug=sys.argv[1]), User.objects.get()
for _ in range(int(sys.argv[2])):
    start_run(agent, by=user, inputs={"input": "Wait."})
"""
HEARTBEATS = """
import sys, time, django
django.setup()
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone
from runs.models import Agent, Run, Worker
from runs.services.spec.freeze import freeze_agent
from runs.store.claims import ClaimedRun, WorkerState
from runs.store.database_clock import db_time_from_now
from runs.store.specs import get_or_create_spec
from runs.worker.heartbeat import check_claims, send_heartbeat
agent, user = Agent.objects.first(), User.objects.get()
spec, now = get_or_create_spec(freeze_agent(agent)), timezone.now()
state = WorkerState()
state.worker = Worker.objects.create(
    name="bench", host="", pid=1, started_at=now, last_heartbeat=now
)
fields = {"owner": user, "agent": agent, "spec": spec, "queued_at": now, "fence": 1}
fields |= {"status": "running", "worker": state.worker, "started_at": now}
rows = [Run(lease_until=now, **fields) for _ in range(int(sys.argv[1]))]
for row in Run.objects.bulk_create(rows):
    state.add_claim(ClaimedRun(row.pk, fence=1))
beat = {"heartbeat": send_heartbeat, "check": check_claims}[sys.argv[2]]
sys.stdout.write("ready\\n"); sys.stdout.flush(); sys.stdin.readline()
for _ in range(10):
    beat(state)
sys.stdout.write("done\\n"); sys.stdout.flush(); sys.stdin.readline()
Run.objects.filter(worker=state.worker).delete(); state.worker.delete()
"""
BEATING = 2000
STEPS = (100, 250, 500, 1000)
MOST_MB, MOST_CONNECTIONS = 300, 97


def main() -> int:
    """Measure, print the table, and say by the exit code whether all is reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=STEPS[-1])
    parser.add_argument("--only", choices=PARTS, action="append")
    given = parser.parse_args()
    only = given.only or list(PARTS)
    with private_servers() as servers:
        servers["AGENTSITE_USER_RUNS"] = "0"
        with running_site(servers) as site:
            found = [line for part in only for line in PARTS[part](site, given.runs)]
    sys.stdout.write(HEAD + "".join(f"{each.line()}\n" for each in found))
    return 0 if all(each.is_reached for each in found) else 1


def one_worker(site: Site, most: int) -> list[Measure]:
    """Weigh a worker at more and more waiting runs."""
    found = [Measure("MB of an idle worker", memory_of(site.worker))]
    for runs in [*(step for step in STEPS if step < most), most]:
        cpu = cpu_of(site.worker)
        hold(site, runs)
        target = Target(MOST_MB, MOST_MB) if runs == 1000 else None
        note = f"{threads_of(site.worker)} threads, {connections(site)} connections"
        name = f"MB of a worker with {runs} runs in a 30 s model call"
        found.append(Measure(name, memory_of(site.worker), target, note))
        finish(site)
        cpu = 1000 * (cpu_of(site.worker) - cpu) / runs
        found.append(Measure("  CPU ms of the worker per run", cpu))
    time.sleep(45)  # idle threads end after 30 seconds
    note = f"{threads_of(site.worker)} threads"
    found.append(
        Measure("MB 45 s after the last run", memory_of(site.worker), None, note)
    )
    return found


def four_workers(site: Site, runs: int) -> list[Measure]:
    """Count the connections of four workers and a web server."""
    with ExitStack() as stack:
        for _ in range(3):
            start(stack, site.env, *WORKER)
        time.sleep(10)
        hold(site, runs)
        most = connections(site)
        while unfinished(site):
            most = max(most, connections(site))
            time.sleep(0.05)
    target = Target(MOST_CONNECTIONS, MOST_CONNECTIONS)
    return [Measure(f"connections, 4 workers, 1 web, {runs} runs", most, target)]


def heartbeats(site: Site, _: int) -> list[Measure]:
    """Weigh what a running run costs PostgreSQL while nothing happens."""
    return [
        Measure(
            f"PostgreSQL's CPU us per run and {name}", _weigh_beat(site, kind), None
        )
        for name, kind in (("heartbeat", "heartbeat"), ("check for cancels", "check"))
    ]


def _weigh_beat(site: Site, kind: str) -> float:
    process = subprocess.Popen(
        [sys.executable, "-c", HEARTBEATS, str(BEATING), kind],
        cwd=ROOT,
        env=site.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    before = site.postgres_spent()
    process.stdin.write("\n")
    process.stdin.flush()
    process.stdout.readline()
    spent = site.postgres_spent() - before
    process.communicate("\n")
    return 1e6 * spent / (10 * BEATING)


PARTS = {"one": one_worker, "four": four_workers, "heartbeats": heartbeats}


def hold(site: Site, runs: int) -> None:
    """Start so many runs and wait until all of them wait for the model."""
    site.first_calls()
    run(site.env, "-c", START_RUNS, SLOW, str(runs))
    arrived, until = 0, time.monotonic() + 60
    while arrived < runs:
        arrived += len(site.first_calls())
        assert time.monotonic() < until, f"{arrived} of {runs} runs called the model"
        time.sleep(0.1)


def finish(site: Site) -> None:
    """Wait until every run has ended."""
    until = time.monotonic() + 120
    while left := unfinished(site):
        assert time.monotonic() < until, f"{left} runs have not ended"
        time.sleep(0.1)
    row = site.database.execute(
        "SELECT count(*) FROM runs_run WHERE status <> 'succeeded' OR fence > 1"
    ).fetchone()
    assert row == (0,), f"{row} runs failed or were claimed twice"


def unfinished(site: Site) -> int:
    row = site.database.execute(
        "SELECT count(*) FROM runs_run WHERE ended_at IS NULL"
    ).fetchone()
    assert row is not None
    return int(row[0])


def connections(site: Site) -> int:
    """Return the connections to PostgreSQL, without that of this measurement."""
    row = site.database.execute(
        "SELECT count(*) - 1 FROM pg_stat_activity "
        "WHERE backend_type = 'client backend'"
    ).fetchone()
    assert row is not None
    return int(row[0])


def threads_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


if __name__ == "__main__":
    sys.exit(main())
