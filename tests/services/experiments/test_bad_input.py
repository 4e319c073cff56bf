"""Experiments while what they need is removed or answers nonsense: the rest goes on."""

import pytest
from django.utils import timezone

from runs.models import (
    Agent,
    Dataset,
    Evaluator,
    Example,
    Experiment,
    Run,
    Score,
)
from runs.services.agents.manage import archive_definition, unarchive_definition
from runs.services.datasets.content import ExampleContent
from runs.services.datasets.edit import add_examples, remove_example
from runs.services.datasets.save_version import save_dataset_version
from runs.services.experiments.advance import advance_experiment
from runs.services.experiments.claim import claim_experiments
from runs.services.experiments.control import resume_experiment
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.services.experiments.figures import load_stored_figures
from runs.services.retention.erase_person import erase_person, list_person_stages
from runs.services.retention.jobs import claim_job, run_job
from runs.services.runs.delete_rows import delete_run_rows
from tests.fakes.model_server import model_server
from tests.make import make_agent, make_dataset, make_provider, make_run, make_user
from tests.makers.experiments import (
    HOLDER,
    end_runs,
    make_examples,
    make_revision,
    turn,
)

pytestmark = pytest.mark.django_db(transaction=True)


def start(agents: list[Agent], evaluators: list[Evaluator], **plan) -> Experiment:
    """Start an experiment of three examples by the draft of each agent."""
    owner = agents[0].owner
    return create_experiment(
        plan.pop("dataset", None) or make_examples(owner, 3),
        [CandidateChoice(one) for one in agents],
        [one.revisions.get() for one in evaluators],
        by=owner,
        plan=ExperimentPlan(**plan),
    )


def make_evaluator(owner, name: str = "Contains", **fields) -> Evaluator:
    return make_revision(owner, name=name, **fields).evaluator


def go_to_end(experiment: Experiment) -> Experiment:
    """Do the turns of a worker, for all experiments, until nothing is left to do."""
    for _ in range(6):
        for each in claim_experiments(HOLDER):
            advance_experiment(each)
            end_runs(each)
    return Experiment.objects.get(pk=experiment.pk)


def erase(user) -> None:
    job = claim_job(erase_person(user, to=None, by=None).pk)
    assert run_job(job, pause=lambda _: False, stages=list_person_stages(job))


def states_of(experiment: Experiment, agent: Agent) -> list[str]:
    rows = experiment.cells.filter(candidate__agent=agent).order_by("place")
    return list(rows.values_list("state", flat=True))


def test_an_archived_evaluator_scores_the_experiment_to_its_end():
    agent = make_agent()
    evaluator = make_evaluator(agent.owner)
    experiment = start([agent], [evaluator], concurrency=1)
    turn(experiment)
    archive_definition(evaluator)

    experiment = go_to_end(experiment)

    assert experiment.status == "done"
    assert Score.objects.filter(passed=True).count() == 3


def test_a_deleted_evaluator_is_named_as_missing_and_the_others_score_on(redis_url):
    agent, eve = make_agent(), make_user("eve")
    lost = make_evaluator(eve, "Lost", visibility="everyone")
    experiment = start([agent], [make_evaluator(agent.owner), lost], concurrency=1)
    turn(experiment)
    end_runs(experiment)
    turn(experiment)
    assert Score.objects.count() == 2

    erase(eve)
    experiment = go_to_end(experiment)

    assert experiment.status == "done"
    assert "An evaluator was deleted with its owner's account" in experiment.problem
    assert experiment.cells.filter(state="done", passed=True).count() == 3
    assert Score.objects.count() == 3


def test_an_experiment_whose_evaluators_were_all_deleted_stops_and_says_so(redis_url):
    agent, eve = make_agent(), make_user("eve")
    lost = make_evaluator(eve, "Lost", visibility="everyone")
    other = start([make_agent()], [make_evaluator(make_user())])
    experiment = start([agent], [lost], concurrency=1)
    for each in claim_experiments(HOLDER):
        advance_experiment(each)

    erase(eve)
    experiment = go_to_end(experiment)

    assert experiment.status == "stopped"
    assert "All its evaluators were deleted" in experiment.problem
    assert not experiment.cells.filter(state="started").exists()
    assert Run.objects.filter(experiment_run__experiment=experiment).count() == 1
    assert go_to_end(other).status == "done"


def test_an_agent_archived_meanwhile_stops_its_candidate_only():
    owner = make_user()
    kept, archived = make_agent(owner), make_agent(owner)
    experiment = start([kept, archived], [make_evaluator(owner)], concurrency=2)
    turn(experiment)
    archive_definition(archived)

    experiment = go_to_end(experiment)

    assert states_of(experiment, kept) == ["done"] * 3
    assert states_of(experiment, archived) == ["done", "waiting", "waiting"]
    assert experiment.status == "stopped"
    assert experiment.problem == "The agent is archived. Unarchive it to run it."

    unarchive_definition(archived)
    assert resume_experiment(experiment, by=owner, budget=None)
    experiment = go_to_end(experiment)
    assert (experiment.status, experiment.problem) == ("done", "")
    assert Score.objects.count() == 6


def test_many_waiting_runs_of_an_archived_agent_do_not_hold_up_the_others():
    owner = make_user()
    archived, kept = make_agent(owner), make_agent(owner)
    dataset = make_examples(owner, 25)
    experiment = start(
        [archived, kept], [make_evaluator(owner)], dataset=dataset, concurrency=5
    )
    archive_definition(archived)

    for _ in range(2):
        experiment = go_to_end(experiment)

    assert states_of(experiment, kept) == ["done"] * 25
    assert states_of(experiment, archived) == ["waiting"] * 25
    assert experiment.status == "stopped"


def test_a_comparison_stops_when_its_baseline_is_archived(monkeypatch):
    monkeypatch.setattr("runs.llm.retry.BASE_DELAY", 0.01)
    owner = make_user()
    archived, kept = make_agent(owner), make_agent(owner)
    slug = make_provider(owner).slug
    config = {"provider": slug, "model": "m", "rubric": "Kinder?"}
    judge = make_evaluator(
        owner, "Judge", kind="judge", config={**config, "form": "pairwise"}
    )
    experiment = start([archived, kept], [judge], concurrency=2)
    turn(experiment)
    archive_definition(archived)

    experiment = go_to_end(experiment)

    assert experiment.status == "stopped"
    assert states_of(experiment, kept) == ["done", "waiting", "waiting"]


def make_recorded_examples(owner, runs: list[Run]) -> Dataset:
    dataset = make_dataset(owner, visibility="everyone")
    one = ExampleContent(inputs={"input": "Go."}, expected_answer="yes")
    add_examples(dataset, [one] * len(runs), by=owner, runs=runs)
    save_dataset_version(dataset, seen=0, by=owner)
    return Dataset.objects.get(pk=dataset.pk)


@pytest.mark.parametrize("mode", ["replay_strict", "replay_by_tool"])
def test_a_recording_that_one_may_not_see_refuses_its_example_only(mode):
    ann, bob = make_user(), make_user()
    runs = [make_run(one, status="succeeded") for one in (ann, bob, ann)]
    dataset = make_recorded_examples(ann, runs)
    agent = make_agent(bob)
    evaluator = make_evaluator(bob)

    experiment = start([agent], [evaluator], dataset=dataset, tool_mode=mode)
    experiment = go_to_end(experiment)

    assert (experiment.status, experiment.problem) == ("done", "")
    found = {one.example.number: one for one in experiment.cells.all()}
    assert [found[n].state for n in (1, 2, 3)] == ["refused", "done", "refused"]
    assert f"run {runs[0].pk} was deleted, or you cannot see it" in found[1].problem


def test_a_recording_deleted_meanwhile_refuses_its_example_only():
    ann = make_user()
    runs = [make_run(ann, status="succeeded") for _ in range(3)]
    dataset = make_recorded_examples(ann, runs)
    experiment = start(
        [make_agent(ann)],
        [make_evaluator(ann)],
        dataset=dataset,
        tool_mode="replay_strict",
        concurrency=1,
    )
    turn(experiment)
    waiting = experiment.cells.filter(state="waiting").order_by("place").first()
    delete_run_rows([waiting.example.source_run_id])

    experiment = go_to_end(experiment)

    assert experiment.status == "done"
    waiting.refresh_from_db()
    assert waiting.state == "refused"
    assert "no source run" in waiting.problem
    assert experiment.cells.filter(state="done").count() == 2


def test_an_example_removed_and_a_dataset_archived_meanwhile_change_nothing():
    owner = make_user()
    dataset = make_examples(owner, 3)
    experiment = start(
        [make_agent(owner)], [make_evaluator(owner)], dataset=dataset, concurrency=1
    )
    turn(experiment)
    for number in (1, 2, 3):
        if number < 3:
            remove_example(dataset, number, by=owner)
    save_dataset_version(dataset, seen=1, by=owner)
    archive_definition(dataset)

    experiment = go_to_end(experiment)

    assert experiment.status == "done"
    assert experiment.cells.filter(state="done", passed=True).count() == 3
    assert Example.objects.filter(until_version=None).count() == 1


def test_a_judge_that_answers_in_prose_leaves_the_other_scores_and_no_verdict():
    owner = make_user()
    with model_server(script=["Lovely!"] * 3) as server:
        provider = make_provider(owner, base_url=server.base_url)
        config = {"provider": provider.slug, "model": "m", "rubric": "Right?"}
        judge = make_evaluator(owner, "Judge", kind="judge", config=config)
        experiment = start([make_agent(owner)], [judge, make_evaluator(owner)])
        experiment = go_to_end(experiment)

    assert experiment.status == "done"
    prose = Score.objects.filter(revision__evaluator=judge)
    assert {(one.value, one.passed) for one in prose} == {(None, None)}
    assert all("did not reply with JSON, but: Lovely!" in one.problem for one in prose)
    assert Score.objects.filter(problem="", passed=True).count() == 3
    [figures] = load_stored_figures(experiment).candidates
    assert (figures.decided, figures.not_scored) == (0, 3)


def test_a_provider_archived_meanwhile_leaves_the_reason():
    owner = make_user()
    provider = make_provider(owner)
    config = {"provider": provider.slug, "model": "m", "rubric": "Right?"}
    judge = make_evaluator(owner, "Judge", kind="judge", config=config)
    experiment = start([make_agent(owner)], [judge])
    turn(experiment)
    provider.archived_at = timezone.now()
    provider.save()

    experiment = go_to_end(experiment)

    assert experiment.status == "done"
    assert "was not found" in Score.objects.first().problem
