"""The budget of an experiment: of its runs, and of the judges that score them."""

import threading
from collections.abc import Iterator
from decimal import Decimal

import pytest

from runs.models import Experiment, ProviderModel, Run, Score
from runs.services.experiments.advance import advance_experiment
from runs.services.experiments.claim import find_open_experiments
from runs.services.experiments.control import (
    resume_experiment,
    score_again,
    stop_experiment,
)
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.services.experiments.figures import load_stored_figures
from runs.services.experiments.score_cells import NOT_JUDGED
from runs.worker.scoring_threads import THREADS_PER_EXPERIMENT, ScoringThreads
from tests.fakes.model_server import FakeServer, model_server
from tests.make import make_agent, make_provider, make_user
from tests.makers.experiments import (
    claim_experiment,
    end_run,
    end_runs,
    make_examples,
    make_revision,
    turn,
)
from tests.support.timing import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

BUDGET = Decimal("0.05")
PRICE = Decimal("0.01")
"""Of a verdict: of the 20 tokens of its reply."""
MOST_VERDICTS = 5
GOOD = '{"explanation": "It is polite", "score": 1}'


def answer_slowly(request: object) -> dict:
    return {"content": GOOD, "seconds": 0.2}


def judge_experiment(server: FakeServer, count: int, **plan) -> Experiment:
    """Make one whose judge costs a cent for each run."""
    owner = make_user()
    provider = make_provider(owner, base_url=server.base_url)
    ProviderModel.objects.create(
        provider=provider, name="m", input_price=0, output_price=500
    )
    config = {"provider": provider.slug, "model": "m", "rubric": "Polite?"}
    return create_experiment(
        make_examples(owner, count),
        [CandidateChoice(make_agent(owner))],
        [
            make_revision(owner),
            make_revision(owner, name="Tone", kind="judge", config=config),
        ],
        by=owner,
        plan=ExperimentPlan(**{"budget": BUDGET, **plan}),
    )


def advance_until_rest(experiment: Experiment) -> Experiment:
    """Do turns as the process of experiments does, until nothing is left to do."""
    threads = ScoringThreads()

    def is_done_after_a_turn() -> bool:
        claimed = claim_experiment()
        if claimed is not None:
            advance_experiment(claimed, slow=threads)
            end_runs(experiment)
        return claimed is None

    wait_until(is_done_after_a_turn)
    wait_until(lambda: not threads.list_cells(experiment.pk))
    return Experiment.objects.get(pk=experiment.pk)


@pytest.fixture
def judge() -> Iterator[FakeServer]:
    with model_server(script=answer_slowly) as server:
        yield server


def test_a_slow_judge_is_not_asked_beyond_the_budget(judge, client):
    experiment = advance_until_rest(judge_experiment(judge, 60))

    asked = len(judge.requests)
    assert (experiment.status, experiment.problem) == ("stopped", "budget")
    assert MOST_VERDICTS <= asked < MOST_VERDICTS + THREADS_PER_EXPERIMENT
    assert experiment.cells.filter(score=1.0).count() == asked
    unjudged = experiment.cells.filter(state="done", score=None)
    assert unjudged.exists()
    assert not experiment.cells.filter(state="started").exists()
    for cell in unjudged:
        assert [one.problem for one in cell.scores.all()] == ["", NOT_JUDGED]
    client.force_login(experiment.owner)
    page = client.get(f"/experiments/{experiment.pk}/?cell={unjudged[0].pk}").text
    assert f"Not scored: {NOT_JUDGED}" in page
    assert find_open_experiments().count() == 0
    [figures] = load_stored_figures(experiment).candidates
    assert figures.judge_cost == asked * PRICE
    assert figures.not_scored == unjudged.count()


def test_the_price_of_the_first_verdict_limits_those_in_flight(judge):
    experiment = judge_experiment(judge, 60)
    turn(experiment)
    end_run(experiment.cells.filter(state="started")[0], "yes")
    turn(experiment)
    assert len(judge.requests) == 1

    advance_until_rest(experiment)

    assert len(judge.requests) == MOST_VERDICTS


def test_few_runs_are_started_before_the_first_verdict():
    may_answer = threading.Event()

    def answer_when_allowed(request: object) -> dict:
        assert may_answer.wait(60)
        return {"content": GOOD}

    with model_server(script=answer_when_allowed) as judge:
        experiment = judge_experiment(judge, 60, concurrency=3)
        claimed, threads = claim_experiment(), ScoringThreads()

        def count_started_after_turns() -> int:
            for _ in range(4):
                advance_experiment(claimed, slow=threads)
                end_runs(experiment)
            return experiment.cells.exclude(state="waiting").count()

        before = count_started_after_turns()
        may_answer.set()
        wait_until(lambda: not threads.list_cells(experiment.pk))

        assert before == 3
        assert count_started_after_turns() == MOST_VERDICTS
        wait_until(lambda: not threads.list_cells(experiment.pk))


def test_runs_are_not_started_for_verdicts_that_are_too_expensive(judge):
    experiment = judge_experiment(judge, 60, concurrency=4)
    turn(experiment)
    end_runs(experiment)

    turn(experiment)

    started = experiment.cells.exclude(state="waiting").count()
    assert (len(judge.requests), started) == (4, 5)


@pytest.mark.slow
def test_a_resumed_experiment_judges_what_is_missing_once(judge):
    experiment = advance_until_rest(judge_experiment(judge, 30))
    assert resume_experiment(experiment, by=experiment.owner, budget=Decimal("0.1"))
    experiment = advance_until_rest(experiment)
    assert (experiment.status, len(judge.requests)) == ("stopped", 10)
    assert resume_experiment(experiment, by=experiment.owner, budget=None)

    experiment = advance_until_rest(experiment)

    assert (experiment.status, len(judge.requests)) == ("done", 30)
    assert Score.objects.filter(problem="").count() == 60
    assert Score.objects.count() == 60
    assert Run.objects.count() == 30


def test_a_stopped_experiment_keeps_to_its_budget_too(judge):
    experiment = judge_experiment(judge, 10)
    turn(experiment)
    end_runs(experiment)
    assert stop_experiment(experiment, by=experiment.owner)

    experiment = advance_until_rest(experiment)

    assert len(judge.requests) < MOST_VERDICTS + THREADS_PER_EXPERIMENT
    assert experiment.cells.filter(scores__problem=NOT_JUDGED).exists()
    assert resume_experiment(experiment, by=experiment.owner, budget=None)
    assert advance_until_rest(experiment).status == "done"
    assert len(judge.requests) == 10


def test_a_failed_run_needs_no_budget(judge):
    experiment = judge_experiment(judge, 3, budget=Decimal("0.000001"))
    turn(experiment)
    first, *others = experiment.cells.order_by("place")
    end_run(first, "yes")
    turn(experiment)
    end_runs(experiment, status="failed", error_message="No answer.")

    experiment = advance_until_rest(experiment)

    for cell in others:
        assert {one.problem for one in cell.scores.all()} == {
            "The run failed: No answer."
        }
    assert (experiment.status, len(judge.requests)) == ("stopped", 1)


def test_a_run_left_unjudged_when_the_budget_was_raised_is_judged(judge):
    experiment = advance_until_rest(judge_experiment(judge, 9))
    assert experiment.cells.filter(scores__problem=NOT_JUDGED).exists()
    Experiment.objects.update(status="running", budget=None)

    assert advance_until_rest(experiment).status == "done"
    assert Score.objects.filter(problem="").count() == 18


def test_a_person_has_a_run_of_an_ended_experiment_scored_again(judge):
    experiment = judge_experiment(judge, 1)
    turn(experiment)
    end_runs(experiment)
    assert turn(experiment).status == "done"
    Experiment.objects.update(budget=PRICE)

    assert score_again(experiment.cells.get())
    advance_until_rest(experiment)

    assert (len(judge.requests), experiment.cells.get().score) == (2, 1.0)
