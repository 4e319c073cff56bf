"""Queues: one run for one person, scores, skips, undo, corrections."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import Annotation, Example, QueuedRun
from runs.services.annotation.annotate import (
    AnnotationContent,
    skip_run,
    submit_annotation,
    undo_annotation,
)
from runs.services.annotation.claim import (
    AnnotationRefused,
    claim_next_run,
    renew_claim,
)
from runs.services.annotation.queued_runs import (
    add_runs_to_queue,
    load_queue_progress,
    remove_queued_run,
)
from runs.services.datasets.edit import add_examples, edit_example
from runs.services.datasets.from_run import build_content_of_run
from runs.services.datasets.save_version import save_dataset_version
from runs.services.datasets.working_copy import select_working_examples
from tests.make import make_agent, make_dataset, make_run, make_user
from tests.makers.annotation import make_ended_run, make_queue, score_next
from tests.support.threads import at_once

pytestmark = pytest.mark.django_db
GOOD = AnnotationContent(4)


@pytest.fixture
def ann():
    return make_user("ann")


@pytest.fixture
def ben():
    return make_user("ben")


def let_claims_expire() -> None:
    past = timezone.now() - timedelta(hours=1)
    Annotation.objects.filter(state="claimed").update(claimed_until=past)


def done_counts(queue) -> list[int]:
    return list(queue.items.values_list("done_count", flat=True))


def test_two_people_never_get_the_same_run(ann, ben):
    queue = make_queue(runs=3)

    first, second = claim_next_run(queue, by=ann), claim_next_run(queue, by=ben)
    third = claim_next_run(queue, by=make_user("cleo"))

    assert len({first.pk, second.pk, third.pk}) == 3
    assert claim_next_run(queue, by=make_user("dora")) is None
    assert claim_next_run(queue, by=ann) == first  # the same until it is scored


@pytest.mark.django_db(transaction=True)
def test_people_who_score_at_once_never_meet():
    queue = make_queue(runs=8)
    people = [make_user() for _ in range(4)]

    def score_twice(person):
        return lambda: [score_next(queue, person) for _ in range(2)]

    at_once(*(score_twice(person) for person in people))

    assert done_counts(queue) == [1] * 8
    assert Annotation.objects.values("item").distinct().count() == 8


def test_each_run_is_scored_by_as_many_people_as_wanted(ann, ben):
    queue = make_queue(runs=1, people_per_run=2)

    assert score_next(queue, ann) == claim_next_run(queue, by=ben)
    assert claim_next_run(queue, by=ann) is None
    assert claim_next_run(queue, by=make_user("cleo")) is None
    score_next(queue, ben, 2)

    assert done_counts(queue) == [2]
    progress = load_queue_progress(queue, by=ann)
    assert (progress.mine, progress.others, progress.total) == (1, 1, 2)
    assert progress.is_over


def test_an_expired_claim_goes_to_somebody_else_and_its_scores_are_refused(ann, ben):
    queue = make_queue(runs=1)
    item = claim_next_run(queue, by=ann)
    let_claims_expire()
    assert claim_next_run(queue, by=ben) == item

    with pytest.raises(AnnotationRefused, match="ben has reserved this run"):
        renew_claim(item, by=ann)
    with pytest.raises(AnnotationRefused, match="ben has reserved this run"):
        submit_annotation(item, GOOD, by=ann)
    assert done_counts(queue) == [0]

    submit_annotation(item, GOOD, by=ben)
    assert done_counts(queue) == [1]


def test_late_scores_of_a_run_that_nobody_else_took_are_stored(ann, ben):
    queue = make_queue(runs=1)
    item = claim_next_run(queue, by=ann)
    let_claims_expire()
    renew_claim(item, by=ann)
    assert claim_next_run(queue, by=ben) is None

    let_claims_expire()
    submit_annotation(item, GOOD, by=ann)
    assert done_counts(queue) == [1]


def test_scoring_again_changes_the_score_and_counts_once(ann):
    queue = make_queue(runs=1)
    item = score_next(queue, ann, 2)

    submit_annotation(item, AnnotationContent(5, comment="Better."), by=ann)

    assert done_counts(queue) == [1]
    said = Annotation.objects.get()
    assert (said.mark, said.comment) == (5, "Better.")


def test_a_skipped_run_goes_to_others_and_comes_back_only_on_request(ann, ben):
    queue = make_queue(runs=1)
    item = claim_next_run(queue, by=ann)
    skip_run(item, by=ann)

    assert claim_next_run(queue, by=ann) is None
    assert load_queue_progress(queue, by=ann).skipped == 1
    assert claim_next_run(queue, by=ben) == item
    assert claim_next_run(queue, by=ann, with_skipped=True) is None
    let_claims_expire()
    assert claim_next_run(queue, by=ann, with_skipped=True) == item


def test_undo_opens_the_last_run_with_what_was_entered(ann):
    queue = make_queue(runs=2)
    first = score_next(queue, ann, 2, labels=("Tone",), comment="Rude.")
    second = claim_next_run(queue, by=ann)

    assert undo_annotation(queue, by=ann) == first
    said = Annotation.objects.get(item=first)
    assert (said.state, said.mark, said.comment) == ("claimed", 2, "Rude.")
    assert done_counts(queue) == [0, 0]

    assert claim_next_run(queue, by=ann) == first
    submit_annotation(first, GOOD, by=ann)
    assert claim_next_run(queue, by=ann) == second


def test_undo_of_a_skipped_run_is_refused_while_somebody_else_has_it(ann, ben):
    queue = make_queue(runs=1)
    skip_run(claim_next_run(queue, by=ann), by=ann)
    claim_next_run(queue, by=ben)

    with pytest.raises(AnnotationRefused, match="is reserved by someone else"):
        undo_annotation(queue, by=ann)
    with pytest.raises(AnnotationRefused, match="nothing to undo"):
        undo_annotation(queue, by=ben)


def test_a_corrected_answer_becomes_an_example_without_the_calls_of_the_run(ann):
    dataset = make_dataset(ann)
    queue = make_queue(ann, runs=1, dataset=dataset)
    item = score_next(queue, make_user("ben"), 2, correction="42.", is_added=True)

    example = Example.objects.get()
    assert (example.expected_answer, example.expected_calls) == ("42.", [])
    assert (example.source_run_id, example.change) == (item.run_id, "added")

    undo_annotation(queue, by=make_user("ben"))
    assert not Example.objects.exists()


@pytest.mark.parametrize("answer", ["43.", "42."])
def test_undo_leaves_an_example_that_another_person_corrected(ann, ben, answer):
    queue = make_queue(ann, runs=1, people_per_run=2, dataset=make_dataset(ann))
    score_next(queue, ann, correction="42.", is_added=True)
    score_next(queue, ben, correction=answer, is_added=True)

    undo_annotation(queue, by=ann)

    example = Example.objects.get()
    assert (example.expected_answer, example.by) == (answer, ben)


def test_undo_leaves_an_example_that_a_version_has(ann):
    dataset = make_dataset(ann)
    queue = make_queue(ann, runs=1, dataset=dataset)
    score_next(queue, ann, correction="42.", is_added=True)
    save_dataset_version(dataset, seen=0, by=ann)

    undo_annotation(queue, by=ann)

    assert Example.objects.get().expected_answer == "42."


def test_an_example_with_the_same_input_gets_the_answer(ann):
    dataset = make_dataset(ann)
    queue = make_queue(ann, runs=1, dataset=dataset)
    known = build_content_of_run(queue.items.get().run)
    add_examples(dataset, [known.model_copy(update={"tags": ("t",)})], by=ann)

    score_next(queue, ann, correction="42.", is_added=True)

    example = Example.objects.get()
    assert (example.expected_answer, example.tags) == ("42.", ["t"])


def make_queue_with_example(owner, answer: str, *, people: int = 1, **columns):
    """Make a queue of one run, and a saved example with the same input."""
    dataset = make_dataset(owner)
    queue = make_queue(owner, runs=1, people_per_run=people, dataset=dataset)
    known = build_content_of_run(queue.items.get().run)
    columns = {"expected_answer": answer, **columns}
    add_examples(dataset, [known.model_copy(update=columns)], by=owner)
    save_dataset_version(dataset, seen=0, by=owner)
    return queue


def answers_of(queue) -> list[str]:
    return [row.expected_answer for row in select_working_examples(queue.dataset)]


def test_undo_restores_the_answer_of_an_example_that_was_saved(ann, ben):
    queue = make_queue_with_example(ann, "ORIGINAL", tags=("t",))
    score_next(queue, ben, correction="LIN 2", is_added=True)
    assert answers_of(queue) == ["LIN 2"]

    undo_annotation(queue, by=ben)

    example = Example.objects.get()  # without an unsaved change
    assert (example.expected_answer, example.tags) == ("ORIGINAL", ["t"])
    assert (example.change, example.by) == ("", ann)


def test_undo_restores_an_unsaved_answer_of_somebody_else_who_can_undo_it(ann, ben):
    queue = make_queue_with_example(ann, "ORIGINAL", people=2)
    score_next(queue, ann, correction="First.", is_added=True)
    score_next(queue, ben, correction="Second.", is_added=True)

    undo_annotation(queue, by=ben)
    assert answers_of(queue) == ["First."]
    undo_annotation(queue, by=ann)
    assert answers_of(queue) == ["ORIGINAL"]


def test_undo_leaves_an_edited_example_that_somebody_else_has_changed(ann, ben):
    queue = make_queue_with_example(ann, "ORIGINAL", people=2)
    score_next(queue, ann, correction="First.", is_added=True)
    score_next(queue, ben, correction="Second.", is_added=True)

    undo_annotation(queue, by=ann)

    assert answers_of(queue) == ["Second."]


def test_undo_leaves_an_edited_example_that_a_version_has(ann):
    queue = make_queue_with_example(ann, "ORIGINAL")
    score_next(queue, ann, correction="LIN 2", is_added=True)
    save_dataset_version(queue.dataset, seen=1, by=ann)

    undo_annotation(queue, by=ann)

    assert answers_of(queue) == ["LIN 2"]


@pytest.mark.parametrize("is_known", [True, False])
def test_undo_undoes_all_corrections_of_a_run_that_was_scored_again(ann, is_known):
    if is_known:
        queue = make_queue_with_example(ann, "ORIGINAL")
    else:
        queue = make_queue(ann, runs=1, dataset=make_dataset(ann))
    item = score_next(queue, ann, correction="First.", is_added=True)
    second = AnnotationContent(4, correction="Second.", is_added=True)
    submit_annotation(item, second, by=ann)
    assert answers_of(queue) == ["Second."]

    undo_annotation(queue, by=ann)
    assert answers_of(queue) == ["ORIGINAL"] * is_known


def test_undo_after_undo_restores_what_the_example_was_before_the_last_score(ann, ben):
    queue = make_queue_with_example(ann, "ORIGINAL")
    item = score_next(queue, ben, correction="First.", is_added=True)
    undo_annotation(queue, by=ben)
    edited = build_content_of_run(item.run)
    edit_example(queue.dataset, 1, edited, by=ann)
    score_next(queue, ben, correction="Second.", is_added=True)

    undo_annotation(queue, by=ben)

    assert answers_of(queue) == [edited.expected_answer]


def test_undo_removes_an_example_that_an_older_version_added(ann):
    queue = make_queue(ann, runs=1, dataset=make_dataset(ann))
    score_next(queue, ann, correction="42.", is_added=True)
    Annotation.objects.update(example_edit=None)

    undo_annotation(queue, by=ann)

    assert answers_of(queue) == []


def test_undo_leaves_an_example_that_another_score_has_added_too(ann, ben):
    queue = make_queue(ann, runs=1, people_per_run=2, dataset=make_dataset(ann))
    score_next(queue, ann, correction="42.", is_added=True)
    score_next(queue, ben, 1, is_added=True)

    undo_annotation(queue, by=ann)

    assert answers_of(queue) == ["42."]


@pytest.mark.parametrize("reason", ["archived", "of somebody else"])
def test_without_a_dataset_that_the_owner_may_edit_nothing_is_stored(ann, reason):
    is_archived = reason == "archived"
    away = {"archived_at": timezone.now()} if is_archived else {}
    dataset = make_dataset(ann if is_archived else make_user("ben"), **away)
    queue = make_queue(ann, runs=1, dataset=dataset)
    item = claim_next_run(queue, by=ann)

    with pytest.raises(AnnotationRefused, match="Clear “Add to dataset”"):
        submit_annotation(item, AnnotationContent(4, is_added=True), by=ann)

    assert done_counts(queue) == [0]
    assert not Annotation.objects.filter(state="done").exists()


def test_only_ended_runs_are_added_and_each_once(ann):
    queue, agent = make_queue(ann), make_agent(ann)
    ended, running = make_ended_run(agent), make_run(agent=agent, status="running")

    assert add_runs_to_queue(queue, [ended, running], by=ann) == (1, 0, 1)
    assert add_runs_to_queue(queue, [ended], by=ann) == (0, 1, 0)
    assert QueuedRun.objects.get().run == ended


def test_what_an_erased_person_said_is_deleted_and_the_run_is_open_again(ann, ben):
    queue = make_queue(runs=1, people_per_run=2)
    score_next(queue, ann)
    item = score_next(queue, ben)

    ann.delete()

    assert done_counts(queue) == [1]
    assert item.annotations.get().by == ben


def test_a_run_that_was_removed_meanwhile_cannot_be_skipped(ann):
    queue = make_queue(ann, runs=1)
    item = claim_next_run(queue, by=ann)
    remove_queued_run(queue.items.get())

    with pytest.raises(AnnotationRefused, match="no longer in the queue"):
        skip_run(item, by=ann)


def test_a_run_scored_by_a_deleted_account_is_open_again(ann, ben):
    queue = make_queue(ann, runs=1)
    score_next(queue, ben, 5)

    ben.delete()

    assert done_counts(queue) == [0]
    submit_annotation(queue.items.get(), GOOD, by=ann)
    assert done_counts(queue) == [1]
