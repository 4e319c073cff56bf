"""The list of datasets, and the form of one."""

from django.contrib import messages
from django.db.models import OuterRef, Subquery
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from runs.forms.datasets.dataset import DatasetForm
from runs.htmx import HtmxRequest
from runs.models import Dataset, DatasetVersion
from runs.ui.list_search import get_search_text, search_rows
from runs.views.lists.actions import build_definition_choices
from runs.views.lists.page import render_list


@require_GET
def dataset_list(request: HtmxRequest) -> HttpResponse:
    away = request.GET.get("archived") == "1"
    newest = DatasetVersion.objects.filter(dataset=OuterRef("pk")).order_by("-number")
    datasets = (
        Dataset.objects.visible_to(request.user)
        .filter(archived_at__isnull=not away)
        .select_related("owner")
        .annotate(example_count=Subquery(newest.values("example_count")[:1]))
        .order_by("name")
    )
    query = get_search_text(request)
    fields = ("name", "slug", "description", "owner__username")
    datasets = search_rows(datasets, query, *fields)
    return render_list(
        request,
        "dataset",
        rows=datasets,
        away=away,
        q=query,
        **build_definition_choices(Dataset, request.user, away=away),
    )


@require_http_methods(["GET", "POST"])
def dataset_create(request: HtmxRequest) -> HttpResponse:
    form = DatasetForm(request.POST or None, instance=Dataset(owner=request.user))
    if form.is_valid():
        dataset = form.save()
        messages.success(
            request,
            _("Dataset %(name)s created. Add examples, or import a file.")
            % {"name": dataset},
        )
        return redirect("dataset-detail", pk=dataset.pk)
    return render(request, "datasets/form.html", {"form": form, "dataset": None})


@require_http_methods(["GET", "POST"])
def dataset_edit(request: HtmxRequest, pk: int) -> HttpResponse:
    dataset = get_object_or_404(Dataset.objects.editable_by(request.user), pk=pk)
    form = DatasetForm(request.POST or None, instance=dataset)
    if form.is_valid():
        form.save()
        messages.success(request, _("Dataset %(name)s saved.") % {"name": dataset})
        return redirect("dataset-detail", pk=pk)
    context = {"form": form, "dataset": Dataset.objects.get(pk=pk)}
    return render(request, "datasets/form.html", context)
