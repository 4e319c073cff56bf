"""A judge that compares each answer of an experiment with that of the baseline."""

import json

import pytest

from runs.models import Experiment, Score
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    ExperimentRefused,
    create_experiment,
)
from runs.services.experiments.figures import load_stored_figures
from runs.views.experiments.table import build_experiment_table
from tests.fakes.model_server import model_server
from tests.make import make_agent, make_provider, make_user
from tests.makers.experiments import end_run, make_examples, make_revision, turn

pytestmark = pytest.mark.django_db(transaction=True)

A, B, TIE = ('{"winner": "A"}', '{"winner": "B"}', '{"winner": "tie"}')
BETTER, WORSE, FLIPPED, SAME = (A, B), (B, A), (A, A), (TIE, TIE)


def make_experiment(url: str = "http://127.0.0.1:9/v1", count: int = 1, **more):
    owner = make_user()
    provider = make_provider(owner, base_url=url)
    config = {"provider": provider.slug, "model": "m", "rubric": "Kinder?"}
    judge = make_revision(
        owner, name="Judge", kind="judge", config={**config, "form": "pairwise"}
    )
    agent = make_agent(owner)
    return create_experiment(
        make_examples(owner, count),
        [CandidateChoice(agent)] * more.get("candidates", 2),
        [judge, *more.get("others", ())],
        by=owner,
        plan=ExperimentPlan(),
    )


def end_candidate(experiment: Experiment, position: int, output: str) -> None:
    for cell in experiment.cells.filter(candidate__position=position, state="started"):
        end_run(cell, output)


def run_with(script, count: int = 1) -> Experiment:
    """Run an experiment of which each comparison gets two replies of the script."""
    with model_server(script=[one for pair in script for one in pair]) as server:
        experiment = make_experiment(server.base_url, count)
        turn(experiment)
        end_candidate(experiment, 0, "The baseline's answer.")
        end_candidate(experiment, 1, "The candidate's answer.")
        experiment = turn(experiment)
        asked = [one.body["messages"][1]["content"] for one in server.requests]
    assert len(asked) == 2 * count
    orders = [[json.loads(one)[side]["answer"] for side in "AB"] for one in asked[:2]]
    assert (
        orders[0]
        == orders[1][::-1]
        == [
            "The candidate's answer.",
            "The baseline's answer.",
        ]
    )
    return experiment


@pytest.mark.parametrize(
    ("replies", "value", "label"),
    [
        pytest.param(BETTER, 1, "better", id="better"),
        pytest.param(WORSE, 0, "worse", id="worse"),
        pytest.param(FLIPPED, 0.5, "same", id="a-position-is-no-preference"),
        pytest.param(SAME, 0.5, "same", id="tie"),
    ],
)
def test_each_answer_is_compared_in_both_orders(replies, value, label):
    experiment = run_with([replies])

    score = Score.objects.get(cell__candidate__position=1)
    assert (experiment.status, score.value, score.label) == ("done", value, label)


def test_the_baseline_is_neither_judged_nor_unscored():
    run_with([BETTER])

    score = Score.objects.get(cell__candidate__position=0)
    assert (score.value, score.passed, score.label) == (0.5, None, "baseline")
    assert score.problem == ""


def test_preferences_are_counted_as_better_and_worse():
    experiment = run_with([BETTER, BETTER, WORSE, SAME], count=4)

    [compared] = load_stored_figures(experiment).comparisons
    table = build_experiment_table(
        experiment,
        list(experiment.candidates.all()),
        key="better",
        sort="better",
        start=0,
    )
    assert (compared.better, compared.worse, compared.same) == (2, 1, 1)
    assert table.total == 2


def test_a_run_waits_for_that_of_the_baseline():
    experiment = make_experiment()
    turn(experiment)
    end_candidate(experiment, 1, "The candidate's answer.")

    turn(experiment)
    assert not Score.objects.exists()

    experiment.cells.get(candidate__position=0).run.delete()
    turn(experiment)
    score = Score.objects.get(cell__candidate__position=1)
    assert score.problem == "The baseline has no run to compare with."


def test_a_baseline_that_failed_is_named():
    experiment = make_experiment()
    turn(experiment)
    end_candidate(experiment, 0, "")
    end_candidate(experiment, 1, "The candidate's answer.")
    run = experiment.cells.get(candidate__position=0).run
    run.status, run.output, run.error_message = "failed", None, "No model."
    run.save()

    turn(experiment)

    score = Score.objects.get(cell__candidate__position=1)
    assert score.problem == (
        "The run of the baseline has no answer. The run failed: No model."
    )


def test_a_single_candidate_has_nothing_to_compare_with():
    with pytest.raises(ExperimentRefused, match="Select a second candidate"):
        make_experiment(candidates=1)
    assert not Experiment.objects.exists()
