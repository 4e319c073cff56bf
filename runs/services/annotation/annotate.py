"""Score, skip and undo: what a person does with a claimed run."""

from dataclasses import dataclass
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from runs.models import Annotation, AnnotationQueue, Dataset, Example, QueuedRun
from runs.services.annotation.claim import (
    AnnotationRefused,
    claim,
    require_queued,
    require_room,
    select_with_room,
)
from runs.services.annotation.queued_runs import lock_annotation_queue
from runs.services.datasets.edit import (
    add_examples,
    edit_example,
    lock_dataset,
    remove_example,
)
from runs.services.datasets.from_run import (
    build_content_of_run,
    build_question,
    find_same_example,
)
from runs.services.datasets.working_copy import find_working_example

State = Annotation.State


@dataclass(frozen=True)
class AnnotationContent:
    mark: int
    labels: tuple[str, ...] = ()
    comment: str = ""
    correction: str = ""
    """Empty if the answer was not corrected."""
    is_added: bool = False
    """Whether the run becomes an example of the dataset of the queue."""


class AddedExample(NamedTuple):
    """The example that a run became."""

    number: int
    is_new: bool


def submit_annotation(
    item: QueuedRun, content: AnnotationContent, *, by: User
) -> Annotation:
    """Store what `by` says; one that is scored already is changed.

    Raises `AnnotationRefused` if others have the run, `ExampleRefused` or
    `DatasetFull` if it cannot become an example; nothing is stored then.
    """
    with transaction.atomic():
        queue = lock_annotation_queue(item.queue)
        mine = find_annotation(item, by=by)
        if mine.state != State.DONE:
            require_room(queue, item, by=by)
            QueuedRun.objects.filter(pk=item.pk).update(done_count=F("done_count") + 1)
        mine.state, mine.claimed_until = State.DONE, None
        mine.mark, mine.labels = content.mark, list(content.labels)
        mine.comment, mine.correction = content.comment, content.correction
        if content.is_added:
            dataset = require_correction_dataset(queue)
            added = add_example_of(item, content, dataset=dataset, by=by)
            if added.is_new:
                mine.example_number = added.number
        mine.save()
    return mine


def find_annotation(item: QueuedRun, *, by: User) -> Annotation:
    """Return what `by` has said of a run, or an empty annotation, not stored yet."""
    rows = Annotation.objects.filter(item=item, by=by)
    return rows.first() or Annotation(item=item, by=by)


def find_correction_dataset(queue: AnnotationQueue) -> Dataset | None:
    """Return where corrected answers go; the owner of the queue may edit it."""
    if queue.dataset_id is None:
        return None
    rows = Dataset.objects.editable_by(queue.owner).filter(archived_at=None)
    return rows.filter(pk=queue.dataset_id).first()


def require_correction_dataset(queue: AnnotationQueue) -> Dataset:
    """Return where corrected answers go; raise `AnnotationRefused` without one."""
    dataset = find_correction_dataset(queue)
    if dataset is None:
        raise AnnotationRefused(
            _(
                "The dataset of this queue was archived or removed. Clear “Add to "
                "dataset” to save the score."
            )
        )
    return dataset


def add_example_of(
    item: QueuedRun, content: AnnotationContent, *, dataset: Dataset, by: User
) -> AddedExample:
    """Add an unsaved example; one with the same input gets the answer.

    The calls of a corrected run are not expected: they may be what was wrong. A bad
    answer without a correction is not expected either.
    """
    lock_dataset(dataset)
    is_bad = content.mark < item.queue.passing_mark and not content.correction
    of_run = build_question(item.run) if is_bad else build_content_of_run(item.run)
    same = find_same_example(dataset, of_run)
    if same is not None and is_bad:
        return AddedExample(same.number, is_new=False)
    if same is not None:
        answer = content.correction or of_run.expected_answer
        known = of_run.of(same).model_copy(update={"expected_answer": answer})
        edit_example(dataset, same.number, known, by=by)
        return AddedExample(same.number, is_new=False)
    if content.correction:
        changes = {"expected_answer": content.correction, "expected_calls": ()}
        of_run = of_run.model_copy(update=changes)
    [row] = add_examples(
        dataset, [of_run], by=by, source=Example.Source.RUN, runs=[item.run]
    )
    return AddedExample(row.number, is_new=True)


def skip_run(item: QueuedRun, *, by: User) -> None:
    """Leave a run to others; `by` does not get it again unless they ask for it."""
    with transaction.atomic():
        queue = lock_annotation_queue(item.queue)
        require_queued(queue, item)
        mine = find_annotation(item, by=by)
        if mine.state == State.DONE:
            raise AnnotationRefused(_("You have scored this run already."))
        mine.state, mine.claimed_until = State.SKIPPED, None
        mine.save()


def undo_annotation(queue: AnnotationQueue, *, by: User) -> QueuedRun:
    """Undo the last run that `by` scored or skipped, and reserve it again.

    What was entered stays in its form. Raises `AnnotationRefused`.
    """
    with transaction.atomic():
        queue = lock_annotation_queue(queue)
        rows = Annotation.objects.filter(item__queue=queue, by=by)
        last = rows.exclude(state=State.CLAIMED).order_by("-changed_at", "-pk").first()
        if last is None:
            raise AnnotationRefused(_("There is nothing to undo."))
        item = last.item
        if last.state == State.DONE:
            QueuedRun.objects.filter(pk=item.pk).update(done_count=F("done_count") - 1)
            remove_added_example(queue, last)
        elif not select_with_room(
            queue.items.filter(pk=item.pk), queue, by=by
        ).exists():
            raise AnnotationRefused(
                _("Run %(run)d is reserved by someone else.") % {"run": item.run_id}
            )
        rows.filter(state=State.CLAIMED).update(claimed_until=None)
        claim(item, by=by)
    return item


def remove_added_example(queue: AnnotationQueue, annotation: Annotation) -> None:
    """Remove the example that an annotation added, unless a version has it."""
    number, dataset = annotation.example_number, queue.dataset
    if number is None:
        return
    Annotation.objects.filter(pk=annotation.pk).update(example_number=None)
    if dataset is None:
        return
    example = find_working_example(lock_dataset(dataset), number)
    if example is None or example.source_run_id is None:
        return
    is_ours = example.source_run_id == annotation.item.run_id
    if is_ours and example.change == Example.Change.ADDED:
        remove_example(dataset, number, by=annotation.by)
