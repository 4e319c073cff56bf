"""Add runs to annotation queues, remove them, and list them."""

from collections.abc import Collection
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.signals import pre_delete

from runs.models import Annotation, AnnotationQueue, QueuedRun, Run
from runs.models.runs import FINISHED_STATUSES


class QueuedRuns(NamedTuple):
    """What became of runs that somebody wanted to add."""

    added: int
    known: int
    """Those that were in the queue already."""
    unfinished: int


def lock_annotation_queue(queue: AnnotationQueue) -> AnnotationQueue:
    """Return the row, locked until the transaction ends: claims wait for each other."""
    return AnnotationQueue.objects.select_for_update().get(pk=queue.pk)


def add_runs_to_queue(
    queue: AnnotationQueue,
    runs: Collection[Run],
    *,
    by: User | None,
    reason: str = "",
) -> QueuedRuns:
    """Add ended runs, each once; `reason` says why a rule adds them."""
    ended = [run for run in runs if run.status in FINISHED_STATUSES]
    with transaction.atomic():
        lock_annotation_queue(queue)
        rows = QueuedRun.objects.filter(queue=queue, run__in=ended)
        known = set(rows.values_list("run", flat=True))
        new = [
            QueuedRun(queue=queue, run=run, added_by=by, reason=reason[:200])
            for run in ended
            if run.pk not in known
        ]
        QueuedRun.objects.bulk_create(new)
    return QueuedRuns(len(new), len(known), len(runs) - len(ended))


def remove_queued_run(item: QueuedRun) -> None:
    """Remove a run from its queue with all that people said of it there."""
    with transaction.atomic():
        lock_annotation_queue(item.queue)
        QueuedRun.objects.filter(pk=item.pk).delete()


def connect_account_deletion() -> None:
    pre_delete.connect(reopen_scored_runs, sender=User, dispatch_uid="annotations")


def reopen_scored_runs(instance: User, **_more: Any) -> None:
    """Delete the annotations of an account; other people can score these runs again."""
    rows = Annotation.objects.filter(by=instance)
    items = QueuedRun.objects.filter(annotations__in=rows)
    with transaction.atomic():
        keys = list(items.values_list("pk", flat=True))
        rows.delete()
        recount_scores(QueuedRun.objects.filter(pk__in=keys))


def recount_scores(items: QuerySet[QueuedRun]) -> None:
    done = Annotation.objects.filter(item=OuterRef("pk"), state=Annotation.State.DONE)
    counts = done.order_by().values("item").annotate(rows=Count("pk")).values("rows")
    items.update(done_count=0)
    items.filter(pk__in=Annotation.objects.filter(state="done").values("item")).update(
        done_count=Subquery(counts)
    )


class QueueProgress(NamedTuple):
    """How many scores a queue has and needs."""

    total: int
    mine: int
    others: int
    skipped: int
    """Runs that the person skipped, and nobody has scored since."""
    runs: int

    @property
    def done(self) -> int:
        return self.mine + self.others

    @property
    def mine_width(self) -> str:
        """Part of all scores, for a bar."""
        return f"{100 * self.mine / max(self.total, 1):.2f}%"

    @property
    def done_width(self) -> str:
        return f"{100 * min(self.done / max(self.total, 1), 1):.2f}%"

    @property
    def is_over(self) -> bool:
        return self.done >= self.total


def load_queue_progress(queue: AnnotationQueue, *, by: User) -> QueueProgress:
    rows = Annotation.objects.filter(item__queue=queue)
    counts = rows.aggregate(
        mine=Count("pk", filter=Q(state="done", by=by)),
        others=Count("pk", filter=Q(state="done") & ~Q(by=by)),
        skipped=Count(
            "pk",
            filter=Q(state="skipped", by=by)
            & Q(item__done_count__lt=queue.people_per_run),
        ),
    )
    runs = queue.items.count()
    return QueueProgress(total=runs * queue.people_per_run, runs=runs, **counts)
