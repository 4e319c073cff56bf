"""Bisections: versions run one after the other until the first failing one is known."""

from decimal import Decimal

import pytest

from runs.models import Bisection, Experiment, ExperimentRun, Run, Score
from runs.services.experiments.advance import advance_experiment, finish_experiment
from runs.services.experiments.bisect import (
    BisectionPlan,
    CannotBisect,
    extend_bisection,
    load_bisection,
    start_bisection,
)
from runs.services.experiments.control import score_again, stop_experiment
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    ExperimentRefused,
    create_experiment,
)
from runs.services.experiments.repeat import find_experiment, repeat_experiment
from tests.make import make_agent, make_user, make_version
from tests.makers.experiments import (
    claim_experiment,
    end_run,
    end_runs,
    finish_bisection,
    make_examples,
    make_revision,
    turn,
)

pytestmark = pytest.mark.django_db


def make_failed_cell(versions: int = 6, *, draft: bool = False, **plan):
    """Return a cell of the newest version, or of the draft, that did not pass."""
    owner = make_user()
    agent = make_agent(owner)
    made = [make_version(agent) for _ in range(versions)]
    experiment = create_experiment(
        make_examples(owner, 2),
        [CandidateChoice(agent, None if draft else made[-1])],
        [make_revision(owner)],
        by=owner,
        plan=ExperimentPlan(**plan),
    )
    turn(experiment)
    end_runs(experiment, output="no")
    turn(experiment)
    return experiment.cells.select_related("experiment", "candidate", "example")[0]


def run_order(experiment: Experiment) -> list[str]:
    return [one.label for one in experiment.candidates.all()]


def test_finds_the_first_failing_version_with_few_runs():
    cell = make_failed_cell(9)
    found = start_bisection(cell, by=cell.experiment.owner, plan=BisectionPlan())

    found = finish_bisection(found, first_bad=7)

    report = load_bisection(found)
    numbers = [one.number for one in report.versions]
    assert found.status == "done"
    assert (report.state.kind, numbers[report.state.first_bad]) == ("found", 7)
    assert numbers[report.state.last_good] == 6
    assert run_order(found)[:3] == ["Version 9", "Version 1", "Version 5"]
    assert found.cells.count() == found.total == len(run_order(found)) == 5


def test_runs_the_example_alone_with_the_tool_mode_of_the_experiment():
    cell = make_failed_cell(3, tool_mode="replay_by_tool")
    found = start_bisection(cell, by=cell.experiment.owner, plan=BisectionPlan())

    found = finish_bisection(found, first_bad=2)

    runs = Run.objects.filter(experiment_run__experiment=found)
    assert {run.tool_mode for run in runs} == {"replay_by_tool"}
    assert {run.queue for run in runs} == {"bulk"}
    assert {one.example_id for one in found.cells.all()} == {cell.example_id}


def test_a_draft_that_fails_is_searched_from_all_versions():
    cell = make_failed_cell(2, draft=True)
    found = start_bisection(cell, by=cell.experiment.owner, plan=BisectionPlan())

    found = finish_bisection(found, first_bad=9)

    report = load_bisection(found)
    assert run_order(found) == ["Draft", "Version 1", "Version 2"]
    assert report.versions[report.state.first_bad].number is None


def test_most_repetitions_decide():
    cell = make_failed_cell(2)
    plan = BisectionPlan(repetitions=3)
    found = start_bisection(cell, by=cell.experiment.owner, plan=plan)
    turn(found)
    assert end_runs(found, output="no") == 3
    turn(found)  # adds version 1 and starts its runs
    first = found.cells.filter(state="started").first()
    end_run(first, "no")
    end_runs(found, output="yes")

    turn(found)

    assert load_bisection(found).state.kind == "found"


def test_a_failure_that_is_not_reproduced_ends_the_search():
    cell = make_failed_cell(6)
    found = start_bisection(cell, by=cell.experiment.owner, plan=BisectionPlan())

    found = finish_bisection(found, first_bad=99)

    assert load_bisection(found).state.kind == "not_reproduced"
    assert (found.status, found.cells.count()) == ("done", 1)


def test_finds_the_change_if_the_oldest_version_fails_too():
    cell = make_failed_cell(6)
    found = start_bisection(cell, by=cell.experiment.owner, plan=BisectionPlan())

    found = finish_bisection(found, first_good=2, first_bad=6)

    report = load_bisection(found)
    assert report.state == (None, "found", 4, 5)
    assert run_order(found) == ["Version 6", "Version 1", "Version 5"]


def end_unscored(experiment: Experiment) -> Experiment:
    """End a search whose first run has no score."""
    turn(experiment)
    end_runs(experiment, output="no")
    turn(experiment)
    Score.objects.filter(cell__experiment=experiment).delete()
    experiment.cells.exclude(state="done").delete()
    experiment.candidates.exclude(position=0).delete()
    experiment.cells.update(passed=None, score=None)
    rows = Experiment.objects.filter(pk=experiment.pk)
    rows.update(total=1, created_runs=1)
    assert load_bisection(turn(experiment)).state.kind == "unscored"
    return Experiment.objects.get(pk=experiment.pk)


def test_a_search_goes_on_after_its_run_was_scored_again():
    cell = make_failed_cell(4)
    found = start_bisection(cell, by=cell.experiment.owner, plan=BisectionPlan())
    found = end_unscored(found)
    assert found.status == "done"

    assert score_again(found.cells.get())
    found = finish_bisection(found, first_bad=3)

    report = load_bisection(found)
    assert (report.state.kind, report.state.first_bad) == ("found", 2)
    assert (found.status, found.needs_figures) == ("done", False)
    assert found.ended_at is not None


def test_a_stopped_search_stays_stopped_when_a_run_is_scored_again():
    cell = make_failed_cell(4)
    found = start_bisection(cell, by=cell.experiment.owner, plan=BisectionPlan())
    turn(found)
    end_runs(found, output="no")
    turn(found)
    stop_experiment(found, by=found.owner)

    score_again(found.cells.get(state="done"))
    end_runs(found, output="yes")
    turn(found)

    assert Experiment.objects.get(pk=found.pk).status == "stopped"


def test_a_run_that_is_scored_at_the_end_of_a_turn_does_not_end_the_search():
    cell = make_failed_cell(4)
    found = start_bisection(cell, by=cell.experiment.owner, plan=BisectionPlan())
    turn(found)
    end_runs(found, output="no")
    found.cells.update(state="done", passed=False)

    assert not finish_experiment(Experiment.objects.get(pk=found.pk))


def test_a_version_that_cannot_run_the_example_is_skipped():
    cell = make_failed_cell(4)
    found = start_bisection(cell, by=cell.experiment.owner, plan=BisectionPlan())
    turn(found)
    end_runs(found, output="no")
    turn(found)
    end_runs(found, status="failed", error_message="no such model")
    turn(found)

    found = finish_bisection(found, first_bad=3)

    report = load_bisection(found)
    assert report.versions[0].outcome == "unscored"
    assert (report.state.last_good, report.state.first_bad) == (1, 2)


def test_the_budget_stops_the_search():
    cell = make_failed_cell(6)
    plan = BisectionPlan(budget=Decimal("0.5"))
    found = start_bisection(cell, by=cell.experiment.owner, plan=plan)
    turn(found)
    end_runs(found, output="no", cost=Decimal(1))

    found = turn(found)

    assert (found.status, found.problem) == ("stopped", "budget")
    assert Run.objects.filter(experiment_run__experiment=found).count() == 1


def test_the_owner_who_lost_the_agent_cannot_go_on():
    cell = make_failed_cell(6)
    found = start_bisection(cell, by=cell.experiment.owner, plan=BisectionPlan())
    turn(found)
    end_runs(found, output="no")
    agent = cell.candidate.agent
    agent.owner = make_user()
    agent.save()

    found = turn(found)

    assert found.status == "stopped"
    assert "You cannot use the agent" in found.problem


def test_two_workers_add_a_version_once():
    cell = make_failed_cell(6)
    found = start_bisection(cell, by=cell.experiment.owner, plan=BisectionPlan())
    turn(found)
    end_runs(found, output="no")
    found.cells.update(state="done", passed=False)
    [late, early] = [Experiment.objects.get(pk=found.pk) for _ in range(2)]

    extend_bisection(early)
    found.cells.filter(state="waiting").update(state="done", passed=True)
    extend_bisection(late)

    assert found.candidates.count() == 2


def test_a_lost_worker_leaves_a_search_that_another_one_finishes():
    cell = make_failed_cell(5)
    found = start_bisection(cell, by=cell.experiment.owner, plan=BisectionPlan())
    turn(found)
    claim_experiment()  # and dies
    Experiment.objects.update(lease_until=None)
    claimed = claim_experiment()
    advance_experiment(claimed)

    found = finish_bisection(found, first_bad=4)

    assert load_bisection(found).state.kind == "found"
    assert ExperimentRun.objects.filter(experiment=found).count() == found.total


def test_a_run_that_passed_is_refused():
    cell = make_failed_cell()
    ExperimentRun.objects.filter(pk=cell.pk).update(passed=True)
    cell.refresh_from_db()

    with pytest.raises(CannotBisect, match="has not failed"):
        start_bisection(cell, by=cell.experiment.owner, plan=BisectionPlan())
    assert not Bisection.objects.exists()


def test_the_first_version_has_nothing_before_it():
    cell = make_failed_cell(1)

    with pytest.raises(CannotBisect, match="no earlier version"):
        start_bisection(cell, by=cell.experiment.owner, plan=BisectionPlan())


def test_only_the_evaluators_that_failed_judge_the_versions():
    cell = make_failed_cell(3)
    passing = make_revision(cell.experiment.owner, name="No", config={"texts": ["no"]})
    cell.experiment.evaluators.add(passing)
    Score.objects.create(cell=cell, revision=passing, value=1, passed=True)

    found = start_bisection(cell, by=cell.experiment.owner, plan=BisectionPlan())

    assert [one.evaluator.name for one in found.evaluators.all()] == ["Contains"]


def test_a_bisection_is_not_repeated_as_an_experiment():
    cell = make_failed_cell()
    owner = cell.experiment.owner
    found = start_bisection(cell, by=owner, plan=BisectionPlan())

    with pytest.raises(ExperimentRefused, match="runs a whole dataset"):
        repeat_experiment(found, by=owner)
    with pytest.raises(ExperimentRefused, match="not found"):
        find_experiment(found.name)
