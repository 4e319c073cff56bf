"""Score, skip and undo: what a person does with a claimed run."""

from dataclasses import dataclass
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from runs.engine.types import FrozenModel
from runs.models import Annotation, AnnotationQueue, Dataset, Example, QueuedRun
from runs.services.annotation.claim import (
    AnnotationRefused,
    claim,
    has_room,
    require_queued,
    require_room,
)
from runs.services.annotation.queued_runs import lock_annotation_queue
from runs.services.datasets.content import ExampleContent, compute_input_digest
from runs.services.datasets.edit import (
    add_examples,
    edit_example,
    lock_dataset,
    remove_example,
)
from runs.services.datasets.from_run import build_content_of_run, build_question
from runs.services.datasets.same_example import find_same_example
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


class ExampleEdit(FrozenModel):
    """What an annotation did to an example, as stored, to undo it."""

    before: str | None = None
    """The expected answer that it replaced; None if it added the example."""
    before_by: int | None = None
    """The account that changed the example last before."""
    after: str | None = None
    """The expected answer that it left; None if an older version stored it."""


class AddedExample(NamedTuple):
    """The example that a run became."""

    number: int
    edit: ExampleEdit


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
            mine.example_number, mine.example_edit = None, None
        mine.state, mine.claimed_until = State.DONE, None
        mine.mark, mine.labels = content.mark, list(content.labels)
        mine.comment, mine.correction = content.comment, content.correction
        if content.is_added:
            dataset = lock_dataset(require_correction_dataset(queue))
            own = find_own_example(dataset, mine)
            added = add_example_of(item, content, dataset=dataset, by=by)
            set_example_of(mine, added, is_again=own is not None)
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
    same = find_same_example(dataset, of_run, item.run)
    if same is not None:
        before = same.expected_answer
        answer = before if is_bad else content.correction or of_run.expected_answer
        if not is_bad:
            set_expected_answer(dataset, same, answer, by=by)
        edit = ExampleEdit(before=before, before_by=same.by_id, after=answer)
        return AddedExample(same.number, edit)
    if content.correction:
        changes = {"expected_answer": content.correction, "expected_calls": ()}
        of_run = of_run.model_copy(update=changes)
    [row] = add_examples(
        dataset, [of_run], by=by, source=Example.Source.RUN, runs=[item.run]
    )
    return AddedExample(row.number, ExampleEdit(after=of_run.expected_answer))


def set_expected_answer(
    dataset: Dataset, example: Example, answer: str, *, by: User
) -> None:
    content = ExampleContent.of(example)
    content = content.model_copy(update={"expected_answer": answer})
    edit_example(dataset, example.number, content, by=by)


def set_example_of(
    annotation: Annotation, added: AddedExample, *, is_again: bool
) -> None:
    """Remember what to undo, without saving.

    With `is_again`, what the annotation did to the example before is undone with it.
    """
    edit = added.edit
    if is_again and annotation.example_number == added.number:
        earlier = load_example_edit(annotation)
        edit = earlier.model_copy(update={"after": edit.after})
    annotation.example_number = added.number
    annotation.example_edit = edit.model_dump()


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
            undo_example_of(queue, last)
        elif not has_room(queue, item, by=by):
            raise AnnotationRefused(
                _("Run %(run)d is reserved by someone else.") % {"run": item.run_id}
            )
        rows.filter(state=State.CLAIMED).update(claimed_until=None)
        claim(item, by=by)
    return item


def undo_example_of(queue: AnnotationQueue, annotation: Annotation) -> None:
    """Undo what an annotation did to an example.

    Nothing happens if a version has it, or somebody else has said something of it.
    """
    if queue.dataset is None:
        return
    dataset = lock_dataset(queue.dataset)
    example = find_own_example(dataset, annotation)
    if example is None:
        return
    edit = load_example_edit(annotation)
    if edit.before is not None:
        by = User.objects.filter(pk=edit.before_by or 0).first() or annotation.by
        set_expected_answer(dataset, example, edit.before, by=by)
    elif not is_example_of_others(dataset, annotation):
        remove_example(dataset, example.number, by=annotation.by)


def load_example_edit(annotation: Annotation) -> ExampleEdit:
    return ExampleEdit.model_validate(annotation.example_edit or {})


def find_own_example(dataset: Dataset, annotation: Annotation) -> Example | None:
    """Return the unsaved example of an annotation, if it is still as it left it."""
    example = find_working_example(dataset, annotation.example_number or 0)
    if example is None or example.by_id != annotation.by_id:
        return None
    edit, run = load_example_edit(annotation), annotation.item.run
    if edit.before is None:
        is_unsaved = example.change == Example.Change.ADDED
        is_of_run = example.source_run_id == run.pk
    else:
        is_unsaved = example.change in (Example.Change.ADDED, Example.Change.EDITED)
        digest = compute_input_digest(build_question(run).inputs)
        is_of_run = example.input_digest == digest
    is_same = edit.after in (None, example.expected_answer)
    return example if is_unsaved and is_of_run and is_same else None


def is_example_of_others(dataset: Dataset, annotation: Annotation) -> bool:
    """Return whether the example of an annotation is that of another one, too."""
    rows = Annotation.objects.filter(item__queue__dataset=dataset, state=State.DONE)
    same = rows.filter(example_number=annotation.example_number)
    return same.exclude(pk=annotation.pk).exists()
