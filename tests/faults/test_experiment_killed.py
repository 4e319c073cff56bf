"""Worker, broker and web server killed in the middle of an experiment."""

import json
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from agentsite.child_processes import HELPER_NICENESS
from tests.fakes.model_server import FakeServer, model_server
from tests.faults.site import Site, run_python, start
from tests.support.empty_database import create_empty_postgresql
from tests.support.postgres import find_initdb, postgresql
from tests.support.timing import wait_until

pytestmark = pytest.mark.faults

EXAMPLES, CANDIDATES = 12, 2
CELLS = EXAMPLES * CANDIDATES
SCORED = int(os.environ.get("SCORED", "4"))
"""Cells that are scored when everything is killed."""

SEED = f"""
import django
django.setup()
from django.contrib.auth.models import User
from runs.models import Agent, Provider
from runs.services.experiments.create import *
from tests.makers.experiments import make_examples, make_revision

ann = User.objects.create_user("ann")
provider = Provider.objects.create(owner=ann, name="demo", kind="demo")
agent = Agent.objects.create(
    owner=ann, name="planner", provider=provider, model="demo-planner",
    parameters={{"words_per_second": 60}},
)
revision = make_revision(ann, config={{"texts": ["demo model"]}})
create_experiment(
    make_examples(ann, {EXAMPLES}), [CandidateChoice(agent)] * {CANDIDATES},
    [revision], by=ann, plan=ExperimentPlan(concurrency=6),
)
"""

JUDGED, VOTES = 3, 2
"""Runs of the experiment with a judge, and its votes on each."""
VOTE_SECONDS = 3.0
VERDICT = {"content": '{"explanation": "Right.", "score": 1}', "seconds": VOTE_SECONDS}
SEED_JUDGE = f"""
import django, os
django.setup()
from django.contrib.auth.models import User
from runs.models import Agent, Provider
from runs.services.experiments.create import *
from tests.makers.experiments import make_examples, make_revision

ann = User.objects.create_user("ann")
demo = Provider.objects.create(owner=ann, name="demo", kind="demo")
agent = Agent.objects.create(
    owner=ann, name="planner", provider=demo, model="demo-planner"
)
url = os.environ["JUDGE_URL"]
Provider.objects.create(owner=ann, name="j", slug="judge", kind="openai", base_url=url)
config = {{"provider": "judge", "model": "m", "rubric": "Right?", "votes": {VOTES}}}
create_experiment(
    make_examples(ann, {JUDGED}), [CandidateChoice(agent)],
    [make_revision(ann, kind="judge", config=config)], by=ann, plan=ExperimentPlan(),
)
"""


@dataclass(frozen=True)
class Experimenting:
    """A site, and its database."""

    site: Site
    database: str
    """Address of a PostgreSQL database; empty for SQLite."""

    def select(self, query: str) -> list[tuple[Any, ...]]:
        """Read the database of the site, as it is now."""
        if self.database:
            with psycopg.connect(self.database) as connection:
                return connection.execute(query).fetchall()
        path = self.site.data / "db.sqlite3"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            return database.execute(query).fetchall()

    def count_cells(self, state: str) -> int:
        query = f"SELECT count(*) FROM runs_experimentrun WHERE state = '{state}'"
        return int(self.select(query)[0][0])

    def describe(self) -> str:
        """Return what the site said, and the state of what does not end."""
        queries = {
            "experiment": "SELECT status, lease_holder, lease_until FROM"
            " runs_experiment",
            "runs": "SELECT id, status, lease_until, waiting_for, queued_at, recoveries"
            " FROM runs_run WHERE ended_at IS NULL",
            "cells": "SELECT state, count(*) FROM runs_experimentrun GROUP BY state",
            "workers": "SELECT name, pid, last_heartbeat, stopped_at FROM runs_worker",
        }
        states = [f"{name}: {self.select(query)}" for name, query in queries.items()]
        return "\n".join([self.site.said, *states])


@pytest.fixture(params=["sqlite", "postgresql"])
def found(request, tmp_path) -> Iterator[Experimenting]:
    if request.param == "sqlite":
        yield from open_site(tmp_path, "", SEED)
    else:
        yield from open_site_on_postgresql(tmp_path, SEED)


@pytest.fixture
def judge() -> Iterator[FakeServer]:
    with model_server(script=lambda _: VERDICT) as server:
        yield server


@pytest.fixture
def judged(tmp_path, judge) -> Iterator[Experimenting]:
    yield from open_site_on_postgresql(tmp_path, SEED_JUDGE, JUDGE_URL=judge.base_url)


def open_site_on_postgresql(
    folder: Any, seed: str, **variables: str
) -> Iterator[Experimenting]:
    initdb = find_initdb()
    assert initdb is not None, "install postgresql to run this test"
    with postgresql(initdb) as server:
        create_empty_postgresql(server.server, "agentsite")
        yield from open_site(folder, server.url, seed, **variables)


def open_site(
    folder: Any, database: str, seed: str, **variables: str
) -> Iterator[Experimenting]:
    where = {"DATABASE_URL": database} if database else {}
    site = start(
        folder / "data",
        niceness=-HELPER_NICENESS,  # else its helpers wait for all other tests
        AGENTSITE_LEASE_SECONDS="8",
        AGENTSITE_SWEEP_SECONDS="0.5",
        **where,
    )
    try:
        site.wait_for("Agentsite is running at")
        run_python(site.data, seed, **where, **variables)
        yield Experimenting(site, database)
    finally:
        site.end()


@pytest.mark.slow
def test_every_cell_is_scored_exactly_once_after_kill_9_of_everything(found):
    site = found.site
    wait_until(
        lambda: found.count_cells("done") >= SCORED,
        seconds=180,
        message=found.describe,
    )
    before = site.children()
    for name in ("worker", "valkey", "web"):
        os.kill(before[name], signal.SIGKILL)
    assert 0 < found.count_cells("done") < CELLS

    check_cells_scored_once(found)
    wait_until(site.answers, seconds=180)
    after = site.children()
    assert all(after[name] != before[name] for name in before)


@pytest.mark.slow
def test_every_cell_is_scored_exactly_once_after_kill_9_of_the_helper(found):
    wait_until(
        lambda: found.count_cells("done") >= SCORED,
        seconds=180,
        message=found.describe,
    )
    worker = found.site.children()["worker"]
    os.kill(find_helper(worker, "bulk"), signal.SIGKILL)
    assert 0 < found.count_cells("done") < CELLS

    check_cells_scored_once(found)
    assert found.site.children()["worker"] == worker


@pytest.mark.slow
def test_a_worker_that_is_stopped_lets_its_helper_return_the_runs(found):
    wait_until(
        lambda: found.count_cells("done") >= SCORED,
        seconds=180,
        message=found.describe,
    )
    worker = found.site.children()["worker"]
    helper = find_helper(worker, "bulk")
    query = f"SELECT stopped_at FROM runs_worker WHERE pid = {helper}"
    wait_until(lambda: found.select(query), seconds=180)

    os.kill(worker, signal.SIGTERM)  # as a container is stopped: no other process

    wait_until(lambda: not Path(f"/proc/{helper}").exists(), seconds=60)
    assert found.select(query)[0][0] is not None
    check_cells_scored_once(found)
    assert found.select("SELECT max(recoveries) FROM runs_run") == [(0,)]


@pytest.mark.slow
def test_every_cell_is_scored_exactly_once_after_kill_9_while_a_judge_waits(
    judged, judge
):
    wait_until(
        lambda: len(judge.requests) == JUDGED,
        seconds=180,
        message=judged.describe,
    )
    os.kill(
        find_helper(judged.site.children()["worker"], "experiments"), signal.SIGKILL
    )
    assert judged.count_cells("started") == JUDGED

    status = "SELECT status, lease_until > now() FROM runs_experiment"
    assert judged.select(status) == [("running", True)]
    wait_until(
        lambda: judged.select(status)[0][0] == "done",
        seconds=180,
        message=judged.describe,
    )
    scores = "SELECT count(*), count(DISTINCT cell_id), sum(value) FROM runs_score"
    assert judged.select(scores) == [(JUDGED, JUDGED, JUDGED)]
    assert judged.count_cells("done") == JUDGED
    assert len(judge.requests) == JUDGED + JUDGED * VOTES


def find_helper(worker: int, program: str) -> int:
    """Return the process of `worker` that executes the runs or scores them."""
    name = f"agentsite.worker.{program}".encode()
    children = Path(f"/proc/{worker}/task").glob("*/children")
    [helper] = [
        int(pid)
        for each in children
        for pid in each.read_text().split()
        if name in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    return helper


def check_cells_scored_once(found: Experimenting) -> None:
    """Wait until the experiment is over; compare its cells, runs and totals."""
    status = "SELECT status FROM runs_experiment"
    wait_until(
        lambda: found.select(status) == [("done",)],
        seconds=240,
        message=found.describe,
    )
    columns = "SELECT state, passed, cost, run_id FROM runs_experimentrun"
    cells = found.select(columns)
    assert [(state, passed) for state, passed, *_ in cells] == [("done", 1)] * CELLS
    assert len({run for *_, run in cells}) == CELLS
    assert found.select("SELECT count(*) FROM runs_run") == [(CELLS,)]
    scores = "SELECT count(*), count(DISTINCT cell_id) FROM runs_score"
    assert found.select(scores) == [(CELLS, CELLS)]
    check_totals(found, cells)


def check_totals(found: Experimenting, cells: list[tuple[Any, ...]]) -> None:
    """Compare the figures of the page with the sums of the cells."""
    [(stored,)] = found.select("SELECT figures FROM runs_experiment")
    figures = json.loads(stored) if isinstance(stored, str) else stored
    figures = figures["candidates"]
    assert [one["done"] for one in figures] == [EXAMPLES] * CANDIDATES
    assert [one["passed"] for one in figures] == [EXAMPLES] * CANDIDATES
    total = sum(Decimal(str(cost)) for _, _, cost, _ in cells)
    assert sum(Decimal(one["cost"]) for one in figures) == total
