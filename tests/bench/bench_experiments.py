"""Experiments beside single runs: `python -m tests.bench.bench_experiments`.

One worker on PostgreSQL. An experiment of EXAMPLES x 2 candidates, whose calls are
replayed, is compared with as many single runs through the API; then live runs are
started at a steady pace, alone and beside an experiment, and their waits are compared.
Exits 1 if a measure misses what it must reach.
"""

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from tests.bench.bench_run_page import Site as Pages
from tests.bench.bench_run_page import read
from tests.bench.bench_runs import HEAD, Measure, Target
from tests.bench.site import Site, private_servers, run, running_site

AGENT = "mock-k5-l0"
USUAL, MOST_AT_ONCE = 10, 50
"""Runs of an experiment at the same time: by default, and the most."""
PAGE_READS = 7
LIVE_RUNS, LIVE_PER_SECOND = 150, 8.0
NO_SLOWER = Target(1.0, 1.0)
FIRST_BYTE = Target(400, 200)
GROWTH = Target(1.2, 1.0)
LEAST_WAIT = 0.02
"""Seconds; shorter waits are counted as this, for a share of them says nothing."""
FILL = """
import django, sys
django.setup()
from django.contrib.auth.models import User
from runs.models import Dataset, Run
from runs.services.datasets.content import ExampleContent
from runs.services.datasets.edit import add_examples
from runs.services.datasets.save_version import save_dataset_version
from tests.bench.run_page_load import open_session
from tests.experiments import make_revision
from tests.make import make_dataset
user = User.objects.get()
dataset = make_dataset(user, name="bench")
rows = list(Run.objects.filter(status="succeeded").order_by("-pk")[:int(sys.argv[1])])
one = ExampleContent(inputs={"input": "Add up."}, expected_answer="The sum is known.")
add_examples(dataset, [one] * len(rows), by=user, runs=rows)
save_dataset_version(dataset, seen=0, by=user)
revision = make_revision(user)
slug = Dataset.objects.get(pk=dataset.pk).slug
print(slug, revision.evaluator.slug, open_session(user))
"""


def main() -> int:
    """Measure, print the table, and say by the exit code whether all is reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=1_000)
    examples = parser.parse_args().examples
    with ExitStack() as stack:
        servers = stack.enter_context(private_servers())
        servers["AGENTSITE_USER_RUNS"] = "0"  # one user starts all of them
        site = stack.enter_context(running_site(servers))
        single = run_singly(site, 2 * examples)
        env = {**os.environ, **site.env}
        words = run(env, "-c", FILL, str(examples)).split()
        dataset, evaluator, cookie = words[-3:]
        number, wall = run_experiment(site, dataset, evaluator, MOST_AT_ONCE)
        pages = Pages(site.port, site.web, cookie)
        page = read(pages, f"/experiments/{number}/", times=PAGE_READS)
        alone = live_wait(site)
        with ThreadPoolExecutor(1) as pool:
            beside = pool.submit(run_experiment, site, dataset, evaluator, USUAL)
            time.sleep(2)
            with_experiment = live_wait(site)
            assert not beside.done(), "The experiment ended before the live runs did."
            beside.result()
    found = [
        Measure(
            f"wall of {examples} x 2 in an experiment / single runs",
            wall / single,
            NO_SLOWER,
            f"{wall:.1f} : {single:.1f} s",
        ),
        Measure("ms to the page of the experiment", 1000 * page.median, FIRST_BYTE),
        Measure(
            "p95 wait of live runs, beside an experiment / alone",
            max(with_experiment, LEAST_WAIT) / max(alone, LEAST_WAIT),
            GROWTH,
            f"{1000 * with_experiment:.0f} : {1000 * alone:.0f} ms",
        ),
    ]
    lines = (f"{each.line()}\n" for each in found)
    sys.stdout.write(HEAD + "".join(lines))
    return 0 if all(each.is_reached for each in found) else 1


def run_singly(site: Site, count: int) -> float:
    """Start so many runs through the API; return the seconds until all are over."""
    began = time.monotonic()
    site.wait([site.start(AGENT) for _ in range(count)], seconds=900)
    return time.monotonic() - began


def run_experiment(
    site: Site, dataset: str, evaluator: str, concurrency: int
) -> tuple[int, float]:
    """Run it to its end; return its number and the seconds it took."""
    body = {
        "dataset": dataset,
        "evaluators": [evaluator],
        "candidates": [{"agent": AGENT}, {"agent": AGENT, "model": "mock-k5-l0 "}],
        "tool_mode": "replay_by_tool",
        "concurrency": concurrency,
    }
    began = time.monotonic()
    found = site.ask("POST", "/api/v1/experiments", json.dumps(body))
    path = f"/api/v1/experiments/{found['id']}"
    while found["status"] == "running":
        assert time.monotonic() < began + 900, found
        time.sleep(0.5)
        found = site.ask("GET", path)
    assert found["status"] == "done", found
    return int(found["id"]), time.monotonic() - began


def live_wait(site: Site) -> float:
    """Start live runs at a steady pace; return the 95th percentile of their waits."""
    runs = []
    for _ in range(LIVE_RUNS):
        runs.append(site.start(AGENT))
        time.sleep(1 / LIVE_PER_SECOND)
    site.wait(runs, seconds=300)
    row = site.database.execute(
        "SELECT percentile_cont(0.95) WITHIN GROUP "
        "(ORDER BY extract(epoch FROM started_at - created_at)) "
        "FROM runs_run WHERE id = ANY(%s)",
        [runs],
    ).fetchone()
    assert row is not None
    return float(row[0])


if __name__ == "__main__":
    sys.exit(main())
