"""What the database adds up for the table, against the same in Python."""

import math
import random
from collections import defaultdict
from statistics import fmean

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.models import Experiment, ExperimentRun
from runs.services.experiments.figures import compute_points
from runs.views.experiments.example_results import (
    find_other_tools,
    load_example_results,
)
from tests.make import make_step
from tests.makers.experiments import make_experiment, turn

pytestmark = pytest.mark.django_db

EXAMPLES, CANDIDATES = 25, 3
STATES = ["done"] * 12 + ["refused", "started", "waiting"]


@pytest.fixture
def experiment() -> Experiment:
    """Make an experiment whose runs have ended in all ways, with several tools."""
    experiment = make_experiment(EXAMPLES, CANDIDATES, repetitions=2, concurrency=150)
    for _ in range(6):
        turn(experiment)
    chance = random.Random(1)
    for cell in experiment.cells.order_by("place"):
        cell.state = chance.choice(STATES)
        cell.run_status = chance.choice(["succeeded", "succeeded", "failed", ""])
        cell.passed = chance.choice([True, False, None])
        cell.score = chance.choice([0.25, 0.5, None])
        cell.cost = chance.choice([0, 1, 2])
        cell.seconds = chance.choice([None, 1.5, 3.0])
        cell.save()
        for tool in ("find", "read", "_answer"):
            if cell.run and chance.random() < 0.85:
                make_step(cell.run, tool=tool)
    return experiment


def list_candidates(experiment: Experiment) -> list[int]:
    return list(experiment.candidates.values_list("pk", flat=True))


def group_cells(
    experiment: Experiment,
) -> dict[int, dict[int, list[ExperimentRun]]]:
    """Return all runs by example and candidate."""
    found = defaultdict(lambda: defaultdict(list))
    for cell in experiment.cells.select_related("run").order_by("place"):
        found[cell.example_id][cell.candidate_id].append(cell)
    return found


def average(cells: list[ExperimentRun]) -> float | None:
    points = [
        compute_points(cell.passed, cell.score, is_preference=False)
        for cell in cells
        if cell.state in ("done", "refused")
    ]
    known = [one for one in points if one is not None]
    return fmean(known) if known else None


def test_results_are_those_of_the_runs(experiment):
    candidates, cells = list_candidates(experiment), group_cells(experiment)
    results = load_example_results(experiment, candidates)

    assert [one.number for one in results] == list(range(1, EXAMPLES + 1))
    for one in results:
        every = [cell for row in cells[one.pk].values() for cell in row]
        over = [cell for cell in every if cell.state in ("done", "refused")]
        answered = [cell for cell in over if cell.run_status == "succeeded"]
        assert one.without_answer == len(over) - len(answered)
        assert one.unscored == sum(
            cell.passed is None and cell.score is None for cell in answered
        )
        assert one.not_passed == sum(cell.passed is False for cell in every)
        assert one.done == sum(cell.state == "done" for cell in every)
        assert one.running == sum(cell.state == "started" for cell in every)
        assert one.waiting == sum(cell.state == "waiting" for cell in every)
        assert one.cost == sum(cell.cost for cell in every)
        assert one.seconds == max(cell.seconds or 0 for cell in every)
        baseline, *others = (average(cells[one.pk][pk]) for pk in candidates)
        known = [mean for mean in (baseline, *others) if mean is not None]
        assert one.lowest == pytest.approx(min(known, default=math.inf))
        changes = [
            mean - baseline
            for mean in others
            if mean is not None and baseline is not None
        ] or [0]
        assert one.smallest == pytest.approx(min(changes))
        assert one.largest == pytest.approx(max(changes))


def test_tools_are_compared_where_all_repetitions_have_ended(experiment):
    candidates = list_candidates(experiment)
    expected = set()
    for example, row in group_cells(experiment).items():
        tools = {
            pk: {
                step.tool
                for cell in row[pk]
                if cell.run
                for step in cell.run.steps.all()
                if step.tool != "_answer"
            }
            for pk in candidates
            if all(cell.state == "done" for cell in row[pk])
        }
        first = tools.pop(candidates[0], None)
        if first is not None and any(one != first for one in tools.values()):
            expected.add(example)

    results = load_example_results(experiment, candidates)

    assert 0 < len(expected) < EXAMPLES
    assert find_other_tools(experiment, results, candidates) == expected


def test_tools_take_one_query_where_all_runs_have_ended(experiment):
    experiment.cells.update(state="done")
    candidates = list_candidates(experiment)
    results = load_example_results(experiment, candidates)

    with CaptureQueriesContext(connection) as queries:
        assert find_other_tools(experiment, results, candidates)

    assert len(queries) == 1
