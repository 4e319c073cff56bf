"""Experiments beside single runs: `python -m tests.bench.bench_experiments`.

One worker on PostgreSQL. An experiment of EXAMPLES x 2 candidates, whose calls are
replayed, is compared with as many single runs through the API; then live runs are
started at a steady pace, alone and beside an experiment, and their waits are compared;
then a small experiment runs alone and beside one whose judge takes 15 seconds a vote.
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
from tests.bench.servers.site import Site, private_servers, run, running_site

AGENT = "mock-k5-l0"
USUAL, MOST_AT_ONCE = 10, 50
"""Runs of an experiment at the same time: by default, and the most."""
PAGE_READS = 7
LIVE_RUNS, LIVE_PER_SECOND = 150, 8.0
NO_SLOWER = Target(1.0, 1.0)
FIRST_BYTE = Target(400, 200)
GROWTH = Target(1.2, 1.0)
SMALL, VOTES = 20, 3
"""Examples of an experiment beside one with a slow judge, and the judge's votes."""
JUDGE_GROWTH = Target(1.5, 1.2)
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
from tests.bench.loads.run_page_load import open_session
from tests.makers.experiments import make_revision
from tests.make import make_dataset
user = User.objects.get()
dataset = make_dataset(user, name="bench")
rows = list(Run.objects.filter(status="succeeded").order_by("-pk")[:int(sys.argv[1])])
one = ExampleContent(inputs={"input": "Add up."}, expected_answer="The sum is known.")
add_examples(dataset, [one] * len(rows), by=user, runs=rows)
save_dataset_version(dataset, seen=0, by=user)
revision = make_revision(user, name=f"Contains {sys.argv[1]}")
slug = Dataset.objects.get(pk=dataset.pk).slug
print(slug, revision.evaluator.slug, open_session(user))
"""
ADD_JUDGE = f"""
import django
django.setup()
from django.contrib.auth.models import User
from tests.makers.experiments import make_revision
config = {{"provider": "mock", "model": "mock-k0-l15000", "rubric": "Right?"}}
config["votes"] = {VOTES}
revision = make_revision(User.objects.get(), name="Judge", kind="judge", config=config)
print(revision.evaluator.slug)
"""


def main() -> int:
    """Measure, print the table, and say by the exit code whether all is reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=1_000)
    parser.add_argument(
        "--part", choices=["load", "judge"], help="measure only this part"
    )
    asked = parser.parse_args()
    with ExitStack() as stack:
        servers = stack.enter_context(private_servers())
        servers["AGENTSITE_USER_RUNS"] = "0"  # one user starts all of them
        site = stack.enter_context(running_site(servers))
        found = []
        if asked.part != "judge":
            found += measure_load(site, asked.examples)
        if asked.part != "load":
            found.append(measure_judge(site))
    lines = (f"{each.line()}\n" for each in found)
    sys.stdout.write(HEAD + "".join(lines))
    return 0 if all(each.is_reached for each in found) else 1


def measure_load(site: Site, examples: int) -> list[Measure]:
    """Compare an experiment with single runs, and live runs beside it with others."""
    single = run_singly(site, 2 * examples)
    dataset, evaluator, cookie = fill(site, examples)
    number, wall = run_experiment(site, dataset, [evaluator], MOST_AT_ONCE)
    pages = Pages(site.port, site.web, cookie)
    page = read(pages, f"/experiments/{number}/", times=PAGE_READS)
    alone = live_wait(site)
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(run_experiment, site, dataset, [evaluator], USUAL)
        time.sleep(2)
        with_experiment = live_wait(site)
        assert not beside.done(), "The experiment ended before the live runs did."
        beside.result()
    return [
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


def measure_judge(site: Site) -> Measure:
    """Compare a small experiment alone with one beside an experiment with a judge."""
    run_singly(site, SMALL)
    dataset, evaluator, _ = fill(site, SMALL)
    run_experiment(site, dataset, [evaluator], USUAL)  # its processes run from now on
    _, alone = run_experiment(site, dataset, [evaluator], USUAL)
    judge = run({**os.environ, **site.env}, "-c", ADD_JUDGE).split()[-1]
    judged = start_experiment(site, dataset, [judge], USUAL)
    time.sleep(10)  # until runs of it have ended
    _, beside = run_experiment(site, dataset, [evaluator], USUAL)
    site.ask("POST", f"/api/v1/experiments/{judged}/stop", "{}")
    return Measure(
        f"wall of {SMALL} x 2, beside a judge that takes {VOTES} x 15 s / alone",
        beside / alone,
        JUDGE_GROWTH,
        f"{beside:.1f} : {alone:.1f} s",
    )


def fill(site: Site, examples: int) -> list[str]:
    """Return a dataset of runs, an evaluator that computes, and a user's cookie."""
    return run({**os.environ, **site.env}, "-c", FILL, str(examples)).split()[-3:]


def run_singly(site: Site, count: int) -> float:
    """Start so many runs through the API; return the seconds until all are over."""
    began = time.monotonic()
    site.wait([site.start(AGENT) for _ in range(count)], seconds=900)
    return time.monotonic() - began


def run_experiment(
    site: Site, dataset: str, evaluators: list[str], concurrency: int
) -> tuple[int, float]:
    """Run it to its end; return its number and the seconds it took."""
    began = time.monotonic()
    number = start_experiment(site, dataset, evaluators, concurrency)
    found = {"status": "running"}
    while found["status"] == "running":
        assert time.monotonic() < began + 900, found
        time.sleep(0.5)
        found = site.ask("GET", f"/api/v1/experiments/{number}")
    assert found["status"] == "done", found
    return number, time.monotonic() - began


def start_experiment(
    site: Site, dataset: str, evaluators: list[str], concurrency: int
) -> int:
    """Start an experiment; return its number."""
    body = {
        "dataset": dataset,
        "evaluators": evaluators,
        "candidates": [{"agent": AGENT}, {"agent": AGENT, "model": "mock-k5-l0 "}],
        "tool_mode": "replay_by_tool",
        "concurrency": concurrency,
    }
    found = site.ask("POST", "/api/v1/experiments", json.dumps(body))
    return int(found["id"])


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
