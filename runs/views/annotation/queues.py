"""The list of annotation queues, and the form of one."""

from django.contrib import messages
from django.db.models import Count, F, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from runs.forms.annotation.queue import AnnotationQueueForm
from runs.htmx import HtmxRequest
from runs.models import AnnotationQueue
from runs.ui.list_search import get_search_text, search_rows
from runs.views.lists.actions import build_definition_choices
from runs.views.lists.page import render_list


@require_GET
def queue_list(request: HtmxRequest) -> HttpResponse:
    """Show the queues visible to the user, and how much is left in each."""
    away = request.GET.get("archived") == "1"
    is_open = Q(items__done_count__lt=F("people_per_run"))
    queues = (
        AnnotationQueue.objects.visible_to(request.user)
        .filter(archived_at__isnull=not away)
        .select_related("owner")
        .annotate(runs=Count("items"), open_runs=Count("items", filter=is_open))
        .order_by("name")
    )
    query = get_search_text(request)
    queues = search_rows(queues, query, "name", "slug", "owner__username")
    return render_list(
        request,
        "queue",
        rows=queues,
        away=away,
        q=query,
        **build_definition_choices(AnnotationQueue, request.user, away=away),
    )


@require_http_methods(["GET", "POST"])
def queue_create(request: HtmxRequest) -> HttpResponse:
    queue = AnnotationQueue(owner=request.user)
    form = AnnotationQueueForm(request.POST or None, instance=queue)
    if form.is_valid():
        queue = form.save()
        messages.success(
            request,
            _("Queue %(name)s created. Add runs to it from the list of runs.")
            % {"name": queue},
        )
        return redirect("queue-detail", pk=queue.pk)
    return render(request, "queues/form.html", {"form": form, "queue": None})


@require_http_methods(["GET", "POST"])
def queue_edit(request: HtmxRequest, pk: int) -> HttpResponse:
    """Edit what people are asked, and who may score."""
    queue = get_object_or_404(
        AnnotationQueue.objects.editable_by(request.user).select_related("owner"),
        pk=pk,
    )
    form = AnnotationQueueForm(request.POST or None, instance=queue)
    if form.is_valid():
        form.save()
        messages.success(request, _("Queue %(name)s saved.") % {"name": queue})
        return redirect("queue-detail", pk=pk)
    context = {"form": form, "queue": AnnotationQueue.objects.get(pk=pk)}
    return render(request, "queues/form.html", context)
