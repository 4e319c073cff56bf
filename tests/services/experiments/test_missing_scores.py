"""Scores that are missing: no verdict without them, and figures that are kept true."""

from decimal import Decimal

import pytest

from runs.models import Evaluator, Experiment, ExperimentRun, Run, Score
from runs.services.datasets.content import ExampleContent
from runs.services.datasets.edit import add_examples
from runs.services.datasets.save_version import save_dataset_version
from runs.services.experiments.advance import advance_experiment
from runs.services.experiments.claim import find_open_experiments
from runs.services.experiments.control import (
    combine_remaining_scores,
    note_deleted_evaluators,
    score_again,
    stop_experiment,
)
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.services.experiments.figures import load_stored_figures
from runs.services.experiments.spending import is_budget_used
from runs.worker.scoring_threads import ScoringThreads
from tests.fakes.model_server import model_server
from tests.make import make_agent, make_provider, make_user
from tests.makers.experiments import (
    claim_experiment,
    end_run,
    end_runs,
    make_examples,
    make_revision,
    turn,
)
from tests.makers.experiments import make_experiment as make_plain_experiment
from tests.support.timing import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

REFUSES_LONG = """
def score(example, run):
    if len(run["answer"]) > 3:
        raise ValueError("too long for me")
    return False
"""
GOOD = '{"explanation": "polite", "score": 1}'


def make_experiment(*kinds: dict, count: int = 6, candidates: int = 1) -> Experiment:
    """Make an experiment of one owner; evaluators are named by their place."""
    owner = make_user()
    revisions = [
        make_revision(owner, **{"name": f"Evaluator {place}", **one})
        for place, one in enumerate(kinds)
    ]
    return create_experiment(
        make_examples(owner, count),
        [CandidateChoice(make_agent(owner)) for _ in range(candidates)],
        revisions,
        by=owner,
        plan=ExperimentPlan(concurrency=50),
    )


def answer(experiment: Experiment, *answers: str) -> Experiment:
    """Run it to its end; each candidate always gives the same answer."""
    turn(experiment)
    for cell in experiment.cells.select_related("candidate"):
        end_run(cell, answers[cell.candidate.position])
    return turn(experiment)


def make_judge(url: str, owner=None, **more) -> dict:
    provider = make_provider(owner, base_url=url, visibility="everyone")
    config = {"provider": provider.slug, "model": "m", "rubric": "Polite?"}
    return {"kind": "judge", "config": {**config, **more}}


def test_a_missing_score_of_one_evaluator_is_no_improvement():
    code = {"kind": "code", "config": {"code": REFUSES_LONG}}
    experiment = answer(make_experiment(code, {}, candidates=2), "yes", "yes, sir")

    figures = load_stored_figures(experiment)

    first, second = figures.candidates
    assert (first.decided, first.passed) == (6, 0)
    assert (second.decided, second.not_scored) == (0, 6)
    assert figures.comparisons[0].kind == "nothing_to_compare"


def test_an_evaluator_without_anything_to_compare_leaves_it_to_the_others():
    number = {"kind": "similarity", "config": {}}
    experiment = make_experiment(number, {"config": {"texts": ["yes"]}}, count=1)
    dataset = experiment.dataset
    open_question = ExampleContent(inputs={"input": "Anything?"})
    add_examples(dataset, [open_question], by=dataset.owner)
    save_dataset_version(dataset, seen=1, by=dataset.owner)
    Experiment.objects.update(dataset_version=2, total=2)

    experiment = answer(Experiment.objects.get(), "yes")

    assert Score.objects.get(applies=False).problem
    assert set(experiment.cells.values_list("passed", flat=True)) == {True}


def test_runs_are_judged_anew_by_the_evaluators_that_are_left():
    experiment = make_experiment({}, candidates=2)
    bob = make_user("bob")
    theirs = make_revision(bob, config={"texts": ["never"]})
    experiment.evaluators.add(theirs)
    experiment = answer(experiment, "yes", "yes")
    assert load_stored_figures(experiment).candidates[0].passed == 0

    changed = note_deleted_evaluators(Evaluator.objects.filter(owner=bob))
    theirs.evaluator.delete()
    combine_remaining_scores(changed)
    experiment = turn(experiment)

    assert [one.passed for one in load_stored_figures(experiment).candidates] == [6, 6]
    assert not find_open_experiments().exists()


def score_in_threads(experiment: Experiment, threads: ScoringThreads) -> None:
    """Do turns as the process of experiments does, until nothing is left to do."""
    while claimed := claim_experiment():
        advance_experiment(claimed, slow=threads)
        wait_until(lambda: not threads.list_cells(experiment.pk))


def test_a_run_that_is_scored_again_after_the_end_counts():
    with model_server(script=["Prose.", GOOD]) as server:
        experiment = make_experiment(make_judge(server.base_url), count=1)
        turn(experiment)
        end_runs(experiment)
        threads = ScoringThreads()
        score_in_threads(experiment, threads)
        assert load_stored_figures(Experiment.objects.get()).candidates[0].decided == 0

        assert score_again(experiment.cells.get())
        score_in_threads(experiment, threads)

    [figures] = load_stored_figures(Experiment.objects.get()).candidates
    assert (figures.decided, figures.passed, figures.not_scored) == (1, 1, 0)


def test_runs_that_are_scored_after_a_stop_count():
    with model_server(script=[GOOD] * 2) as server:
        experiment = make_experiment(make_judge(server.base_url), count=2)
        turn(experiment)
        end_runs(experiment)
        assert stop_experiment(experiment, by=experiment.owner)
        score_in_threads(experiment, ScoringThreads())

    [figures] = load_stored_figures(Experiment.objects.get()).candidates
    assert (figures.decided, figures.passed) == (2, 2)


def test_a_stopped_experiment_without_new_scores_has_one_more_turn():
    experiment = make_plain_experiment()
    turn(experiment)
    Run.objects.update(model_calls=1)
    stop_experiment(experiment, by=experiment.owner)
    end_runs(experiment)
    turn(experiment)

    assert load_stored_figures(Experiment.objects.get()).candidates[0].decided == 3
    assert claim_experiment() is None


def test_what_judges_have_cost_stays_and_is_not_of_the_runs():
    experiment = make_plain_experiment(count=1)
    turn(experiment)
    end_runs(experiment, cost=Decimal("0.001"))
    ExperimentRun.objects.update(judge_cost=Decimal("0.02"))  # of earlier scores
    assert not is_budget_used(experiment)
    experiment.budget = Decimal("0.021")
    assert is_budget_used(experiment)

    experiment = turn(experiment)

    cell = experiment.cells.get()
    assert (cell.cost, cell.judge_cost) == (Decimal("0.021"), Decimal("0.02"))
    [figures] = load_stored_figures(experiment).candidates
    assert figures.cost_per_run == pytest.approx(0.001)


def test_rate_interval_and_repetitions_are_of_examples():
    experiment = make_plain_experiment(count=4, repetitions=3, concurrency=50)
    turn(experiment)
    for cell in experiment.cells.select_related("example", "run"):
        is_good, is_first = cell.example.number <= 2, cell.repetition == 0
        end_run(cell, "yes" if is_good else "no")
        if not is_good and not is_first:  # two of three runs crash
            cell.run.refresh_from_db()
            cell.run.status = "failed"
            cell.run.save(update_fields=["status"])

    [figures] = load_stored_figures(turn(experiment)).candidates

    assert (figures.passed, figures.decided) == (6, 8)
    assert figures.rate == 0.5
    assert figures.low < 0.5 < figures.high
    assert (figures.pass_hat_k, figures.repeated_examples) == (1, 2)
    assert figures.decided_examples == 4
