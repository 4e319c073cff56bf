"""Agreement between people, and of evaluators with people."""

import pytest

from runs.models import (
    AnnotationQueue,
    Evaluator,
    Experiment,
    ExperimentRun,
    Run,
    RunScore,
    Score,
    ScoredRun,
    ScoringRule,
)
from runs.services.annotation.agreement import (
    load_evaluator_agreement,
    load_experiment_agreement,
    load_queue_agreement,
)
from runs.services.annotation.queued_runs import add_runs_to_queue
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from tests.make import make_agent, make_run, make_user
from tests.makers.annotation import make_queue, score_next
from tests.makers.experiments import end_runs, make_examples, make_revision, turn

pytestmark = pytest.mark.django_db


def test_people_are_compared_on_the_runs_that_both_have_scored():
    queue = make_queue(runs=4, people_per_run=3)
    ann, ben = make_user("ann"), make_user("ben")
    for mark in (4, 2, 2, 5):
        score_next(queue, ann, mark)
    for mark in (4, 2, 3):
        score_next(queue, ben, mark)

    [pair] = load_queue_agreement(queue).people

    assert {pair.one, pair.other} == {ann, ben}
    assert (pair.agreement.runs, pair.percent) == (3, 67)
    assert pair.agreement.kappa == pytest.approx(0.5)  # sklearn 1.7 says the same


def make_scored_queue(outputs):
    """Return a queue with runs of an experiment that an evaluator has scored."""
    owner = make_user()
    experiment = create_experiment(
        make_examples(owner, len(outputs)),
        [CandidateChoice(make_agent(owner))],
        [make_revision(owner, name="Judge")],
        by=owner,
        plan=ExperimentPlan(),
    )
    turn(experiment)
    end_runs(experiment)
    runs = [cell.run for cell in experiment.cells.order_by("pk")]
    for run, output in zip(runs, outputs, strict=True):
        run.output = output
        run.save()
    turn(experiment)
    queue = make_queue(owner, people_per_run=2)
    for run in runs:
        run.refresh_from_db()
    add_runs_to_queue(queue, runs, by=owner)
    return queue


def test_evaluators_are_compared_with_the_mean_of_what_people_say():
    queue = make_scored_queue(["yes", "yes", "no", "no"])
    for mark in (5, 2, 1, 4):
        score_next(queue, make_user("ann"), mark)
    score_next(queue, make_user("ben"), 1)  # a mean of 3 is not good

    [found] = load_queue_agreement(queue).evaluators

    assert found.evaluator.name == "Judge"
    assert (found.agreement.runs, found.percent) == (4, 25)
    assert found.agreement.kappa == pytest.approx(-0.5)


def test_runs_that_an_evaluator_could_not_score_are_left_out():
    queue = make_scored_queue(["yes", "no"])
    Score.objects.filter(cell__run=queue.items.first().run).update(passed=None)
    for mark in (5, 1):
        score_next(queue, make_user("ann"), mark)

    [found] = load_queue_agreement(queue).evaluators

    assert (found.agreement.runs, found.percent) == (1, 100)
    assert found.agreement.kappa is None  # one and the same answer: nothing to compare
    assert ExperimentRun.objects.count() == 2


def rate(queue, *ratings):
    for item, rating in zip(queue.items.order_by("pk"), ratings, strict=False):
        Run.objects.filter(pk=item.run_id).update(rating=rating)


def test_an_experiment_is_compared_with_ratings_and_marks():
    queue = make_scored_queue(["yes", "yes", "no", "no"])
    AnnotationQueue.objects.update(people_per_run=1)
    rate(queue, 1, None, None, 1)  # a user of the chat
    for mark in (1, 5, 1):  # the first: a tie with the rating, so it is left out
        score_next(queue, make_user("ann"), mark)
    experiment = Experiment.objects.get()

    found = load_experiment_agreement(experiment, viewer=make_user())

    [(revision, agreement)] = found.revisions.items()
    assert revision == experiment.evaluators.get().pk
    assert agreement == found.all
    assert (agreement.runs, round(agreement.same, 2)) == (3, 0.67)


def test_both_pages_say_the_same_of_the_marks_of_a_queue():
    queue = make_scored_queue(["yes"])
    AnnotationQueue.objects.update(people_per_run=3)
    for mark in (5, 5, 1):  # most say good; the mean does not reach 4
        score_next(queue, make_user(), mark)

    [found] = load_queue_agreement(queue).evaluators
    of_experiment = load_experiment_agreement(
        Experiment.objects.get(), viewer=make_user()
    )

    assert found.agreement == of_experiment.all
    assert found.agreement.same == 0


def test_two_queues_are_two_judgments():
    queue = make_scored_queue(["yes"])
    AnnotationQueue.objects.update(people_per_run=1)
    score_next(queue, make_user(), 5)
    run = queue.items.get().run
    for mark in (4, 1):
        other = make_queue(queue.owner)
        add_runs_to_queue(other, [run], by=queue.owner)
        score_next(other, make_user(), mark)

    found = load_experiment_agreement(Experiment.objects.get(), viewer=make_user())

    assert found.all.same == 1  # two of three queues find it good


def test_marks_that_the_viewer_may_not_know_yet_do_not_count():
    queue = make_scored_queue(["yes", "no"])  # two people score each run
    ann = make_user("ann")
    for mark in (5, 1):
        score_next(queue, ann, mark)
    experiment = Experiment.objects.get()

    def count(viewer):
        found = load_experiment_agreement(experiment, viewer=viewer).all
        return found.runs if found else 0

    assert (count(ann), count(make_user("ben"))) == (2, 0)


def test_an_experiment_that_no_person_has_read_has_no_agreement():
    make_scored_queue(["yes", "no"])

    found = load_experiment_agreement(Experiment.objects.get(), viewer=make_user())

    assert (found.all, found.revisions) == (None, {})


def test_each_revision_of_an_evaluator_is_compared_on_the_runs_one_may_see():
    queue = make_scored_queue(["yes", "no", "yes"])
    rate(queue, 1, -1, -1)
    evaluator = Evaluator.objects.get()

    mine = load_evaluator_agreement(evaluator, viewer=evaluator.owner)

    assert list(mine) == [1]
    assert (mine[1].runs, round(mine[1].same, 2)) == (3, 0.67)
    assert load_evaluator_agreement(evaluator, viewer=make_user("eve")) == {}


def test_runs_that_a_rule_has_scored_count_for_an_evaluator():
    owner = make_user()
    revision = make_revision(owner)
    rule = ScoringRule.objects.create(owner=owner, agent=make_agent(owner), name="r")
    run = make_run(owner, status="succeeded", rating=1)
    scored = ScoredRun.objects.create(rule=rule, run=run)
    RunScore.objects.create(scored=scored, revision=revision, passed=True, value=1)

    found = load_evaluator_agreement(revision.evaluator, viewer=owner)

    assert (found[1].runs, found[1].same) == (1, 1.0)
