"""Experiments: started in batches, scored once, stopped and resumed."""

from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs.models import (
    Example,
    Experiment,
    ExperimentRun,
    ProviderModel,
    Run,
    Score,
)
from runs.services.datasets.content import ExampleContent
from runs.services.datasets.edit import add_examples
from runs.services.datasets.save_version import save_dataset_version
from runs.services.errors import InputsRefused
from runs.services.experiments import advance
from runs.services.experiments import score_cells as score_cells_module
from runs.services.experiments.advance import (
    advance_experiment,
    score_ended_cells,
)
from runs.services.experiments.changes import CandidateChanges
from runs.services.experiments.claim import (
    claim_experiments,
    has_free_experiments,
    release_experiments,
)
from runs.services.experiments.control import resume_experiment, stop_experiment
from runs.services.experiments.create import (
    MAX_CONCURRENCY,
    CandidateChoice,
    ExperimentPlan,
    ExperimentRefused,
    create_experiment,
)
from runs.services.experiments.figures import load_stored_figures
from runs.services.experiments.score_cells import ScoringTurn, score_cells
from runs.services.runs.delete_rows import delete_run_rows
from runs.store.specs import load_spec
from tests.make import (
    make_agent,
    make_call,
    make_dataset,
    make_run,
    make_step,
    make_user,
)
from tests.makers.experiments import (
    HOLDER,
    claim_experiment,
    end_runs,
    make_examples,
    make_experiment,
    make_revision,
    turn,
)

pytestmark = pytest.mark.django_db


def test_an_experiment_is_never_done_with_figures_of_unscored_runs():
    experiment = make_experiment(count=2)
    turn(experiment)
    end_runs(experiment)

    with CaptureQueriesContext(connection) as queries:
        turn(experiment)

    ended = [one["sql"] for one in queries if "'done'" in one["sql"]]
    ended = [sql for sql in ended if sql.startswith("UPDATE") and '"ended_at"' in sql]
    assert len(ended) == 1
    assert '"figures" = ' in ended[0]
    stored = load_stored_figures(Experiment.objects.get())
    assert stored.candidates[0].decided == 2


def test_every_example_is_run_by_every_candidate_and_scored():
    experiment = make_experiment(3, candidates=2, repetitions=2)
    turn(experiment)
    assert end_runs(experiment) == 10
    turn(experiment)
    assert end_runs(experiment) == 2

    experiment = turn(experiment)

    assert experiment.status == "done"
    assert experiment.cells.filter(state="done", passed=True).count() == 12
    assert Score.objects.filter(value=1.0).count() == 12
    [first, second] = load_stored_figures(experiment).candidates
    assert (first.passed, first.decided, first.done, first.total) == (6, 6, 6, 6)
    assert second.rate == 1
    assert claim_experiment() is None


def test_runs_are_tests_in_the_queue_behind_others_and_hold_calls_back():
    experiment = make_experiment(1)
    turn(experiment)

    run = Run.objects.get()
    assert (run.queue, run.source, run.tool_mode) == ("bulk", "eval", "hold_back")
    assert run.is_test


def test_no_more_runs_are_unfinished_than_the_concurrency_allows():
    experiment = make_experiment(5, concurrency=2)
    turn(experiment)
    turn(experiment)
    assert Run.objects.count() == 2

    end_runs(experiment)
    turn(experiment)
    assert Run.objects.count() == 4


def test_a_turn_scores_as_many_runs_as_it_may_start():
    assert advance.SCORED_PER_TURN >= MAX_CONCURRENCY


def test_runs_that_wait_to_be_scored_leave_room_for_others(monkeypatch):
    monkeypatch.setattr(advance, "SCORED_PER_TURN", 1)
    experiment = make_experiment(5, concurrency=2)
    turn(experiment)
    end_runs(experiment)

    turn(experiment)

    assert experiment.cells.filter(state="done").count() == 1
    assert Run.objects.filter(status="queued").count() == 2


@pytest.mark.parametrize(
    ("kind", "config", "commits"),
    [("exact", {}, 2), ("code", {"code": "def score(example, run): return 1"}, 12)],
)
@pytest.mark.django_db(transaction=True)  # the sandbox gives the connection back
def test_only_scores_that_are_computed_share_a_commit(kind, config, commits):
    experiment = make_experiment(12, concurrency=12)
    revision = make_revision(experiment.owner, name="b", kind=kind, config=config)
    experiment.evaluators.add(revision)
    turn(experiment)
    end_runs(experiment)

    with CaptureQueriesContext(connection) as queries:
        turn(experiment)

    stored = [
        one for one in queries if one["sql"].startswith('INSERT INTO "runs_score"')
    ]
    assert len(stored) == commits
    assert Score.objects.filter(problem="").count() == 24


def test_a_batch_that_takes_long_is_stored_before_its_end(monkeypatch):
    monkeypatch.setattr(score_cells_module, "MAX_BATCH_SECONDS", 0)
    experiment = make_experiment(3)
    turn(experiment)
    end_runs(experiment)
    cells = list(experiment.cells.select_related("run", "example").order_by("pk"))
    revisions = list(experiment.evaluators.all())

    assert score_cells(cells, revisions, ScoringTurn(list)) == 1
    assert list(Score.objects.values_list("cell", flat=True)) == [cells[0].pk]


def test_two_workers_start_and_score_each_cell_once():
    experiment = make_experiment(3)
    claimed = claim_experiment()
    assert claim_experiment(uuid4()) is None  # the other worker waits for the lease
    advance_experiment(claimed)
    end_runs(experiment)
    cells = list(experiment.cells.select_related("run", "example"))
    revisions = list(experiment.evaluators.all())

    assert score_cells(cells[:1], revisions, ScoringTurn(list)) == 1
    assert score_cells(cells, revisions, ScoringTurn(list)) == 2
    assert score_cells(cells, revisions, ScoringTurn(list)) == 0
    assert Score.objects.count() == 3
    assert score_ended_cells(experiment) == 0


def test_a_lost_worker_leaves_an_experiment_that_another_one_finishes():
    experiment = make_experiment(3)
    assert claim_experiment(uuid4()) is not None  # and dies
    assert claim_experiment() is None
    Experiment.objects.update(lease_until=timezone.now() - timedelta(seconds=1))

    turn(experiment)
    end_runs(experiment)
    assert turn(experiment).status == "done"
    assert ExperimentRun.objects.count() == 3


def test_a_process_that_ends_releases_what_it_has_claimed():
    make_experiment(3)
    other = uuid4()
    assert claim_experiment(other) is not None
    assert not has_free_experiments()

    release_experiments(other)

    assert has_free_experiments()
    assert claim_experiment() is not None


def test_an_experiment_that_waits_for_a_person_does_not_block_the_next_one():
    waits = make_experiment(1)
    turn(waits)
    Run.objects.update(status="awaiting_approval")
    second = make_experiment(2)

    claimed = [each.pk for each in claim_experiments(HOLDER)]

    assert claimed == [waits.pk, second.pk]


def test_a_run_that_failed_without_a_message_is_a_whole_sentence():
    experiment = make_experiment(1)
    turn(experiment)
    end_runs(experiment, status="failed", error_message="")

    turn(experiment)

    assert Score.objects.get().problem == "The run failed."


def test_a_stopped_experiment_scores_what_runs_and_resumes_what_is_missing():
    experiment = make_experiment(3, concurrency=1)
    turn(experiment)
    Run.objects.update(model_calls=1)
    assert stop_experiment(experiment, by=experiment.owner)
    end_runs(experiment)

    stopped = turn(experiment)
    assert stopped.status == "stopped"
    assert stopped.cells.filter(state="done").count() == 1
    assert claim_experiment() is None

    resume_experiment(stopped, by=experiment.owner, budget=None)
    for _ in range(2):
        turn(experiment)
        end_runs(experiment)
    assert turn(experiment).status == "done"
    assert Run.objects.count() == 3


def test_a_stop_cancels_runs_that_wait_and_have_cost_nothing():
    experiment = make_experiment(4, concurrency=4)
    turn(experiment)
    queued, away, paid, busy = Run.objects.order_by("pk")
    times = {"started_at": timezone.now(), "fence": 1}
    Run.objects.filter(pk=away.pk).update(status="waiting", **times)
    Run.objects.filter(pk=paid.pk).update(status="waiting", model_calls=1, **times)
    Run.objects.filter(pk=busy.pk).update(
        status="running", lease_until=timezone.now() + timedelta(seconds=30), **times
    )

    stop_experiment(experiment, by=experiment.owner)

    statuses = Run.objects.order_by("pk").values_list("status", flat=True)
    assert list(statuses) == ["canceled", "canceled", "waiting", "running"]
    assert set(experiment.cells.values_list("state", "run")) == {
        ("waiting", None),
        ("started", paid.pk),
        ("started", busy.pk),
    }
    stopped = Experiment.objects.get(pk=experiment.pk)
    resume_experiment(stopped, by=experiment.owner, budget=None)
    turn(stopped)
    assert Run.objects.filter(status="queued").count() == 2
    assert not experiment.cells.filter(state="waiting").exists()


def test_a_stopped_experiment_of_which_nothing_is_missing_ends():
    experiment = make_experiment(2, concurrency=2)
    turn(experiment)
    Run.objects.update(model_calls=1)
    stop_experiment(experiment, by=experiment.owner)
    assert turn(experiment).status == "stopped"
    end_runs(experiment)

    assert turn(experiment).status == "done"
    assert claim_experiment() is None


def test_waiting_for_people_and_limits_does_not_make_a_run_slow():
    experiment = make_experiment(1)
    turn(experiment)
    run = Run.objects.get()
    call = make_call(run, elapsed=1.5)
    make_step(run, call=call, elapsed=0.5)
    end_runs(experiment, started_at=timezone.now() - timedelta(hours=1))
    turn(experiment)

    assert experiment.cells.get().seconds == pytest.approx(2)


def test_a_used_up_budget_stops_it():
    experiment = make_experiment(3, concurrency=1, budget=Decimal("0.01"))
    turn(experiment)
    end_runs(experiment, cost=Decimal("0.02"))

    stopped = turn(experiment)

    assert (stopped.status, stopped.problem) == ("stopped", "budget")
    assert stopped.cells.filter(state="done").count() == 1


def test_a_failed_run_is_not_scored_and_never_zero():
    experiment = make_experiment(1)
    turn(experiment)
    end_runs(experiment, status="failed", error_message="No answer.")
    experiment = turn(experiment)

    cell = experiment.cells.get()
    assert (cell.state, cell.passed, cell.score) == ("done", None, None)
    assert "No answer." in Score.objects.get().problem
    [figures] = load_stored_figures(experiment).candidates
    assert (figures.failed, figures.not_scored, figures.decided) == (1, 0, 0)
    assert figures.rate is None


@pytest.mark.parametrize(
    ("mode", "sends_reads"), [("replay_by_tool", False), ("replay_reads", True)]
)
def test_a_replay_by_tool_makes_calls_that_read_if_allowed(mode, sends_reads):
    experiment = make_experiment(1, tool_mode=mode)
    source = make_run(experiment.owner, status="succeeded")
    Example.objects.update(source_run=source)

    turn(experiment)

    run = Run.objects.exclude(pk=source.pk).get()
    found = load_spec(run.spec).tool_mode
    assert (found.kind, found.recording) == ("replay_by_tool", source.pk)
    assert found.sends_reads is sends_reads


@pytest.mark.parametrize(
    "mode", ["hold_back", "live", "replay_by_tool", "replay_strict"]
)
def test_a_run_is_given_the_earlier_messages_of_its_source_run(mode):
    experiment = make_experiment(1)
    Experiment.objects.update(tool_mode=mode)
    source, first = make_continued_run(experiment.owner)

    turn(experiment)

    run = experiment.cells.get().run
    assert (run.turn_ids, run.given_turns) == ([first.pk], source.given_turns)


def make_continued_run(owner) -> tuple[Run, Run]:
    """Make the source run of all examples, and the run before it."""
    first = make_run(owner, status="succeeded", output="Hello Ann.")
    given = [["What is 1 + 1?", "2"]]
    source = make_run(owner, status="succeeded", turn_ids=[first.pk], given_turns=given)
    Example.objects.update(source_run=source)
    return source, first


@pytest.mark.parametrize(
    "mode", ["hold_back", "live", "replay_by_tool", "replay_strict"]
)
@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        ("first", "an earlier run was deleted"),
        ("source", "source run of the example was deleted, and with it the earlier"),
        ("both", "source run of the example was deleted, and with it the earlier"),
        ("right", "You cannot see run"),
    ],
)
def test_an_example_without_its_earlier_messages_is_refused(mode, missing, reason):
    experiment = make_experiment(1)
    Experiment.objects.update(tool_mode=mode)
    is_right = missing != "right"
    source, first = make_continued_run(experiment.owner if is_right else make_user())
    if missing in ("first", "both"):
        delete_run_rows([first.pk])
    if missing in ("source", "both"):
        delete_run_rows([source.pk])

    experiment = turn(experiment)

    cell = experiment.cells.get()
    assert (cell.state, cell.run, experiment.status) == ("refused", None, "done")
    if mode == "replay_strict" and missing in ("source", "both"):
        reason = "no recording for a strict replay"
    assert reason in cell.problem


def test_an_example_of_a_deleted_run_without_earlier_messages_is_run():
    experiment = make_experiment(1)
    source = make_run(experiment.owner, status="succeeded")
    Example.objects.update(source_run=source)
    delete_run_rows([source.pk])

    turn(experiment)

    assert experiment.cells.get().state == "started"


def test_a_strict_replay_needs_a_recording():
    experiment = make_experiment(1)
    Experiment.objects.update(tool_mode="replay_strict")

    experiment = turn(experiment)

    cell = experiment.cells.get()
    assert cell.state == "refused"
    assert "no source run" in cell.problem
    assert experiment.status == "done"


def test_deleted_runs_leave_their_scores():
    experiment = make_experiment(1)
    turn(experiment)
    end_runs(experiment)
    turn(experiment)
    ExperimentRun.objects.update(run=None)

    assert Score.objects.get().value == 1


def test_a_candidate_that_gets_worse_is_told_with_its_tag():
    experiment = make_experiment(16, candidates=2, concurrency=40)
    Example.objects.filter(number__gt=8).update(tags=["refund", "t"])
    turn(experiment)
    second = experiment.candidates.get(position=1)
    end_runs(experiment)
    fell = Run.objects.filter(
        experiment_run__candidate=second, experiment_run__example__number__gt=7
    )
    fell.update(output="no")
    experiment = turn(experiment)

    [compared] = load_stored_figures(experiment).comparisons
    assert (compared.kind, compared.worse, compared.worst_tag) == (
        "clearly_worse",
        9,
        "refund",
    )


def test_a_tag_that_all_examples_have_explains_nothing():
    experiment = make_experiment(3, candidates=2)
    turn(experiment)
    end_runs(experiment)
    second = experiment.candidates.get(position=1)
    Run.objects.filter(experiment_run__candidate=second).update(output="no")

    [compared] = load_stored_figures(turn(experiment)).comparisons

    assert (compared.kind, compared.worst_tag) == ("could_be_chance", "")
    assert (compared.low, compared.high, compared.has_interval) == (-1, 1, False)


def test_a_tag_has_a_comparison_with_an_interval():
    experiment = make_experiment(20, candidates=2, concurrency=50)
    Example.objects.filter(number__gt=10).update(tags=["refund", "t"])
    turn(experiment)
    end_runs(experiment)
    second = experiment.candidates.get(position=1)
    fell = Run.objects.filter(
        experiment_run__candidate=second, experiment_run__example__number__gt=11
    )
    fell.update(output="no")

    experiment = turn(experiment)

    refund, whole = load_stored_figures(experiment).tags
    [compared] = refund.comparisons
    assert (refund.tag, compared.candidate) == ("refund", second.pk)
    assert (compared.kind, compared.better, compared.worse, compared.same) == (
        "clearly_worse",
        0,
        9,
        1,
    )
    assert compared.difference == pytest.approx(-0.9)
    assert compared.low <= -0.9 <= compared.high < 0
    assert whole.comparisons[0].difference == pytest.approx(-0.45)


def test_many_tags_need_more_to_be_clear():
    experiment = make_experiment(7, candidates=2, concurrency=50)
    Example.objects.update(tags=["t", *(f"t{n}" for n in range(9))])
    turn(experiment)
    end_runs(experiment)
    second = experiment.candidates.get(position=1)
    Run.objects.filter(experiment_run__candidate=second).update(output="no")

    figures = load_stored_figures(turn(experiment))

    assert figures.comparisons[0].kind == "clearly_worse"
    assert {tag.comparisons[0].kind for tag in figures.tags} == {"probably_worse"}


def test_examples_without_a_variable_of_the_agent_are_named():
    owner = make_user()
    dataset = make_dataset(owner)
    add_examples(dataset, [ExampleContent(inputs={"city": "Oslo"})], by=owner)
    save_dataset_version(dataset, seen=0, by=owner)
    dataset.refresh_from_db()

    with pytest.raises(InputsRefused, match="without a value for input: 1"):
        create_experiment(
            dataset,
            [CandidateChoice(make_agent(owner))],
            [make_revision(owner)],
            by=owner,
            plan=ExperimentPlan(),
        )
    assert not Experiment.objects.exists()


def test_inputs_that_a_candidate_lacks_are_not_passed_to_its_runs():
    owner = make_user()
    experiment = create_experiment(
        make_examples(owner, 1, city="Oslo"),
        [CandidateChoice(make_agent(owner))],
        [make_revision(owner)],
        by=owner,
        plan=ExperimentPlan(),
    )

    turn(experiment)

    cell = experiment.cells.select_related("run").get()
    assert cell.problem == ""
    assert cell.state == ExperimentRun.State.STARTED
    assert cell.run.inputs == {"input": "question 0"}


def test_a_dataset_without_a_version_cannot_be_run():
    owner = make_user()

    with pytest.raises(ExperimentRefused, match="Save a version"):
        create_experiment(
            make_dataset(owner),
            [CandidateChoice(make_agent(owner))],
            [make_revision(owner)],
            by=owner,
            plan=ExperimentPlan(),
        )


def test_a_candidate_can_have_another_model():
    owner = make_user()
    agent = make_agent(owner)
    experiment = create_experiment(
        make_examples(owner, 1),
        [
            CandidateChoice(agent),
            CandidateChoice(agent, changes=CandidateChanges(model="model-b")),
        ],
        [make_revision(owner)],
        by=owner,
        plan=ExperimentPlan(),
    )

    first, second = experiment.candidates.select_related("spec")
    assert first.spec.body["model"]["model"] == "model-a"
    assert second.spec.body["model"]["model"] == "model-b"
    assert second.label == "Draft, model-b"


def test_repetitions_say_how_often_one_and_all_of_them_pass():
    experiment = make_experiment(2, repetitions=2, concurrency=20)
    turn(experiment)
    end_runs(experiment)
    first = experiment.cells.filter(example__number=1, repetition=0)
    Run.objects.filter(experiment_run__in=first).update(output="no")
    experiment = turn(experiment)

    [figures] = load_stored_figures(experiment).candidates
    assert (figures.pass_at_k, figures.pass_hat_k) == (1.0, 0.5)


def test_figures_of_a_tag_are_those_of_its_examples():
    experiment = make_experiment(3, candidates=2, concurrency=20)
    Example.objects.filter(number=1).update(tags=["city", "t"])
    turn(experiment)
    second = experiment.candidates.get(position=1)
    end_runs(experiment)
    worse = second.cells.filter(example__number=1)
    Run.objects.filter(experiment_run__in=worse).update(output="no")
    experiment = turn(experiment)

    found = load_stored_figures(experiment).tags
    assert [(one.tag, one.passed, one.decided) for one in found] == [
        ("city", (1, 0), (1, 1)),
        ("t", (3, 2), (3, 3)),
    ]


def test_a_candidate_with_another_model_has_its_prices():
    owner = make_user()
    agent = make_agent(owner)
    for name, price in ((agent.model, 1), ("cheap", 0.1)):
        ProviderModel.objects.update_or_create(
            provider=agent.provider, name=name, defaults={"input_price": price}
        )

    experiment = create_experiment(
        make_examples(owner, 1),
        [
            CandidateChoice(agent),
            CandidateChoice(agent, changes=CandidateChanges(model="cheap")),
        ],
        [make_revision(owner)],
        by=owner,
        plan=ExperimentPlan(),
    )

    prices = [load_spec(one.spec).prices for one in experiment.candidates.all()]
    assert [one.input for one in prices] == [1, 0.1]
