"""Claim the next run of a queue, so that two people never get the same one.

All that changes a queue's claims holds the lock of its row, so claims wait for each
other; a claim that is not renewed expires, and somebody else gets the run.
"""

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import (
    Count,
    Exists,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
)
from django.db.models.functions import Coalesce, Now
from django.utils.translation import gettext as _

from runs.models import Annotation, AnnotationQueue, QueuedRun
from runs.services.annotation.queued_runs import lock_annotation_queue
from runs.services.errors import RunsError
from runs.store.database_clock import db_time_from_now
from tools.accounts.person_name import get_person_name

CLAIM_SECONDS = 15 * 60.0
"""An open page renews it every minute."""

State = Annotation.State
LIVE_CLAIM = Q(state=State.CLAIMED, claimed_until__gt=Now())


class AnnotationRefused(RunsError):
    """The run cannot be scored by this person now."""


def claim_next_run(
    queue: AnnotationQueue, *, by: User, with_skipped: bool = False
) -> QueuedRun | None:
    """Return the run that `by` has, or the next one; None if there is none.

    `with_skipped` gives runs again that `by` has skipped.
    """
    with transaction.atomic():
        queue = lock_annotation_queue(queue)
        mine = Annotation.objects.filter(item__queue=queue, by=by)
        if with_skipped:
            mine.filter(state=State.SKIPPED).delete()
        held = mine.filter(LIVE_CLAIM).first()
        item = held.item if held else find_free_run(queue, by=by)
        if item is not None:
            claim(item, by=by)
    return item


def has_open_run(queue: AnnotationQueue, *, by: User) -> bool:
    """Return whether `by` would get a run, without claiming it."""
    mine = Annotation.objects.filter(LIVE_CLAIM, item__queue=queue, by=by)
    return mine.exists() or find_free_run(queue, by=by) is not None


def find_free_run(queue: AnnotationQueue, *, by: User) -> QueuedRun | None:
    """Return the oldest run with room for one more person."""
    seen = Annotation.objects.filter(
        item=OuterRef("pk"), by=by, state__in=(State.DONE, State.SKIPPED)
    )
    rows = queue.items.filter(~Exists(seen), done_count__lt=queue.people_per_run)
    return select_with_room(rows, queue, by=by).order_by("pk").first()


def select_with_room(
    rows: QuerySet[QueuedRun], queue: AnnotationQueue, *, by: User
) -> QuerySet[QueuedRun]:
    """Return the runs that fewer others have scored or claimed than are wanted."""
    claims = Annotation.objects.filter(LIVE_CLAIM, item=OuterRef("pk"))
    count = claims.exclude(by=by).order_by().values("item").annotate(n=Count("pk"))
    held = Coalesce(Subquery(count.values("n"), output_field=IntegerField()), 0)
    return rows.annotate(taken=F("done_count") + held).filter(
        taken__lt=queue.people_per_run
    )


def claim(item: QueuedRun, *, by: User) -> None:
    """Reserve a run of a locked queue; what `by` has said of it before stays."""
    Annotation.objects.update_or_create(
        item=item,
        by=by,
        defaults={
            "state": State.CLAIMED,
            "claimed_until": db_time_from_now(CLAIM_SECONDS),
        },
    )


def renew_claim(item: QueuedRun, *, by: User) -> None:
    """Keep a run reserved; raise `AnnotationRefused` if others have it meanwhile."""
    with transaction.atomic():
        queue = lock_annotation_queue(item.queue)
        mine = Annotation.objects.filter(item=item, by=by).first()
        if mine is not None and mine.state != State.CLAIMED:
            return
        require_queued(queue, item)
        if problem := explain_no_room(queue, item, by=by):
            raise AnnotationRefused(problem)
        claim(item, by=by)


def require_queued(queue: AnnotationQueue, item: QueuedRun) -> None:
    """Raise `AnnotationRefused` if a run was removed from the locked queue."""
    if not queue.items.filter(pk=item.pk).exists():
        raise AnnotationRefused(_("This run is no longer in the queue."))


def require_room(queue: AnnotationQueue, item: QueuedRun, *, by: User) -> None:
    """Raise `AnnotationRefused` if enough others have scored or claimed a run."""
    if has_room(queue, item, by=by):
        return
    require_queued(queue, item)
    raise AnnotationRefused(
        name_other_person(
            item,
            by=by,
            scored=_("%(person)s has scored this run. Your scores were not saved."),
            reserved=_("%(person)s has reserved this run. Your scores were not saved."),
        )
    )


def explain_no_room(queue: AnnotationQueue, item: QueuedRun, *, by: User) -> str:
    """Return why `by` cannot score a run now; empty if they can."""
    if has_room(queue, item, by=by):
        return ""
    return name_other_person(
        item,
        by=by,
        scored=_("%(person)s has scored this run. You cannot score it now."),
        reserved=_("%(person)s has reserved this run. You cannot score it now."),
    )


def name_other_person(item: QueuedRun, *, by: User, scored: str, reserved: str) -> str:
    """Return one of two sentences with the person who has scored or reserved a run."""
    other = find_other_annotation(item, by=by)
    if other is None:  # that account was deleted a moment ago
        return _("Enough people have scored this run.")
    sentence = scored if other.state == State.DONE else reserved
    return sentence % {"person": get_person_name(other.by)}


def has_room(queue: AnnotationQueue, item: QueuedRun, *, by: User) -> bool:
    """Return whether fewer others have scored or claimed a run than are wanted."""
    rows = queue.items.filter(pk=item.pk)
    return select_with_room(rows, queue, by=by).exists()


def find_other_annotation(item: QueuedRun, *, by: User) -> Annotation | None:
    """Return the latest live claim of somebody else; without one, the latest score."""
    others = item.annotations.exclude(by=by).filter(LIVE_CLAIM | Q(state=State.DONE))
    # "claimed" is before "done"
    return others.select_related("by").order_by("state", "-changed_at").first()
