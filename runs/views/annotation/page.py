"""The page of an annotation queue: progress, agreement, and its runs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Count, F, Max, Min, Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from runs.htmx import HtmxRequest, get_return_url
from runs.models import Annotation, AnnotationQueue, QueuedRun, Run
from runs.services.annotation.agreement import load_queue_agreement
from runs.services.annotation.claim import has_open_run
from runs.services.annotation.queued_runs import (
    load_queue_progress,
    remove_queued_run,
)
from runs.ui.list_search import encode_query, get_search_text, search_rows
from runs.views.lists.selection import confirm_change
from runs.whole_number import parse_whole_number

ROWS_PER_PAGE = 50


class QueueFilter(NamedTuple):
    """A filter of the runs of a queue, and how many it has."""

    key: str
    label: str
    runs: int


class QueuedRow(NamedTuple):
    """A run of the queue with what people said, as far as the viewer may know it."""

    item: QueuedRun
    annotations: list[Annotation]
    is_hidden: bool
    """The viewer may still have to score it, so the scores of others are not shown."""
    is_mine: bool
    is_run_visible: bool


@require_GET
def queue_detail(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show how far people are, how far they agree, and the runs."""
    queue = get_visible_queue(request, pk)
    show = request.GET.get("show", "")
    start = parse_whole_number(request.GET.get("from", "")) or 0
    query = get_search_text(request)
    items = search_rows(
        filter_items(queue, show), query, "run__title", "run__agent__name", "reason"
    )
    total = items.count()
    is_editable = AnnotationQueue.objects.editable_by(request.user).filter(pk=pk)
    filters = list_queue_filters(queue)
    context = {
        "queue": queue,
        "is_done": not any(one.runs for one in filters if one.key == "open"),
        "has_open_runs": has_open_run(queue, by=request.user),
        "differing": next((one.runs for one in filters if one.key == "differ"), 0),
        "progress": load_queue_progress(queue, by=request.user),
        "agreement": load_queue_agreement(queue),
        "people": count_scores_by_person(queue),
        "filters": filters,
        "show": show,
        "q": query,
        "kept": encode_query({"q": query}),
        "actions": ["remove"],
        "rows": build_queued_rows(
            list(select_shown_items(items)[start : start + ROWS_PER_PAGE]),
            viewer=request.user,
        ),
        "total": total,
        "first": start + 1,
        "last": min(start + ROWS_PER_PAGE, total),
        "previous_from": max(start - ROWS_PER_PAGE, 0) if start else None,
        "next_from": start + ROWS_PER_PAGE if start + ROWS_PER_PAGE < total else None,
        "may_edit": is_editable.exists(),
    }
    return render(request, "queues/detail.html", context)


@require_POST
def queue_item_remove(request: HtmxRequest, pk: int, item_pk: int) -> HttpResponse:
    """Remove a run from the queue; ask first if it has scores, which are lost."""
    queue = get_object_or_404(AnnotationQueue.objects.editable_by(request.user), pk=pk)
    item = get_object_or_404(queue.items.select_related("queue", "run"), pk=item_pk)
    if item.annotations.exists():
        return confirm_change(request, "queued-run", "remove", [item])
    remove_queued_run(item)
    messages.success(
        request, _("Run %(run)d removed from the queue.") % {"run": item.run_id}
    )
    return redirect(get_return_url(request, reverse("queue-detail", args=[pk])))


def get_visible_queue(request: HtmxRequest, pk: int) -> AnnotationQueue:
    """Return a queue that the user may see; otherwise raise 404."""
    rows = AnnotationQueue.objects.visible_to(request.user)
    return get_object_or_404(rows.select_related("owner", "dataset"), pk=pk)


def select_differing(queue: AnnotationQueue) -> QuerySet[QueuedRun]:
    done = Q(annotations__state=Annotation.State.DONE)
    return queue.items.annotate(
        least=Min("annotations__mark", filter=done),
        most=Max("annotations__mark", filter=done),
    ).filter(most__gt=F("least"))


def filter_items(queue: AnnotationQueue, show: str) -> QuerySet[QueuedRun]:
    match show:
        case "open":
            rows = queue.items.filter(done_count__lt=queue.people_per_run)
        case "done":
            rows = queue.items.filter(done_count__gte=queue.people_per_run)
        case "differ":
            rows = select_differing(queue)
        case _:
            rows = queue.items.all()
    return rows.order_by("pk")


def list_queue_filters(queue: AnnotationQueue) -> list[QueueFilter]:
    """Return the filters; that of different scores only if two people may score."""
    found = [
        QueueFilter("", _("All"), queue.items.count()),
        QueueFilter("open", _("Open"), filter_items(queue, "open").count()),
        QueueFilter("done", _("Done"), filter_items(queue, "done").count()),
    ]
    differing = select_differing(queue).count()
    if differing or queue.people_per_run > 1:
        found.append(QueueFilter("differ", _("Different scores"), differing))
    return found


def count_scores_by_person(queue: AnnotationQueue) -> list[dict[str, Any]]:
    rows = Annotation.objects.filter(item__queue=queue).exclude(state="claimed")
    return list(
        rows.order_by()
        .values("by__username", "by__first_name", "by__last_name")
        .annotate(
            done=Count("pk", filter=Q(state="done")),
            skipped=Count("pk", filter=Q(state="skipped")),
        )
        .order_by("-done", "by__username")
    )


def select_shown_items(items: QuerySet[QueuedRun]) -> QuerySet[QueuedRun]:
    """Return the runs with what `build_queued_rows` needs of them."""
    return items.select_related("run__agent", "run__version", "queue")


def build_queued_rows(shown: Sequence[QueuedRun], *, viewer: User) -> list[QueuedRow]:
    """Return what people said of runs, as far as the viewer may know; two queries."""
    keys = [item.pk for item in shown]
    said: dict[int, list[Annotation]] = {key: [] for key in keys}
    rows = Annotation.objects.filter(item__in=keys, state=Annotation.State.DONE)
    for one in rows.select_related("by"):
        said[one.item_id].append(one)
    runs = [item.run_id for item in shown]
    visible = set(
        Run.objects.visible_to(viewer).filter(pk__in=runs).values_list("pk", flat=True)
    )
    found = []
    for item in shown:
        is_mine = any(one.by_id == viewer.pk for one in said[item.pk])
        is_open = item.done_count < item.queue.people_per_run
        found.append(
            QueuedRow(
                item,
                said[item.pk],
                is_hidden=is_open and not is_mine and bool(said[item.pk]),
                is_mine=is_mine,
                is_run_visible=item.run_id in visible,
            )
        )
    return found
