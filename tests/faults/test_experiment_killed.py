"""Worker, broker and web server killed in the middle of an experiment."""

import json
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from typing import Any

import pytest

from tests.faults.site import Site, run_python, start
from tests.timing import wait_until

pytestmark = pytest.mark.faults

EXAMPLES, CANDIDATES = 12, 2
CELLS = EXAMPLES * CANDIDATES

SEED = f"""
import django
django.setup()
from django.contrib.auth.models import User
from runs.models import Agent, Provider
from runs.services.experiments.create import *
from tests.experiments import make_examples, make_revision

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


@pytest.fixture
def site(tmp_path) -> Iterator[Site]:
    found = start(
        tmp_path / "data", AGENTSITE_LEASE_SECONDS="2", AGENTSITE_SWEEP_SECONDS="0.5"
    )
    found.wait_for("Agentsite is running at")
    yield found
    found.end()


def select(site: Site, query: str) -> list[tuple[Any, ...]]:
    """Read the database of the site, as it is now."""
    path = site.data / "db.sqlite3"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        return database.execute(query).fetchall()


def count(site: Site, state: str) -> int:
    query = f"SELECT count(*) FROM runs_experimentrun WHERE state = '{state}'"
    return int(select(site, query)[0][0])


def test_every_cell_is_scored_exactly_once_after_kill_9_of_everything(site):
    run_python(site.data, SEED)
    wait_until(lambda: count(site, "done") >= 4, seconds=60, message=lambda: site.said)
    before = site.children()
    assert 0 < count(site, "done") < CELLS

    for name in ("worker", "valkey", "web"):
        os.kill(before[name], signal.SIGKILL)

    status = "SELECT status FROM runs_experiment"
    wait_until(
        lambda: select(site, status) == [("done",)],
        seconds=90,
        message=lambda: site.said,
    )
    wait_until(site.answers, seconds=60)
    after = site.children()
    assert all(after[name] != before[name] for name in before)
    cells = select(site, "SELECT state, passed, cost, run_id FROM runs_experimentrun")
    assert [(state, passed) for state, passed, *_ in cells] == [("done", 1)] * CELLS
    assert len({run for *_, run in cells}) == CELLS
    assert select(site, "SELECT count(*) FROM runs_run") == [(CELLS,)]
    scores = select(site, "SELECT count(*), count(DISTINCT cell_id) FROM runs_score")
    assert scores == [(CELLS, CELLS)]
    check_totals(site, cells)


def check_totals(site: Site, cells: list[tuple[Any, ...]]) -> None:
    """Compare the figures of the page with the sums of the cells."""
    [(text,)] = select(site, "SELECT figures FROM runs_experiment")
    figures = json.loads(text)["candidates"]
    assert [one["done"] for one in figures] == [EXAMPLES] * CANDIDATES
    assert [one["passed"] for one in figures] == [EXAMPLES] * CANDIDATES
    total = sum(Decimal(str(cost)) for _, _, cost, _ in cells)
    assert sum(Decimal(one["cost"]) for one in figures) == total
