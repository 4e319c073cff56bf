"""Importing a file: upload, mapping with a preview, and the import itself."""

from django.contrib import messages
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from runs.htmx import HtmxRequest, wants_part
from runs.models import Dataset, DatasetUpload
from runs.services.datasets.import_rows import ImportCounts, import_upload
from runs.services.datasets.mapping import ImportMapping, list_field_options
from runs.services.datasets.parse_file import check_file_size
from runs.services.datasets.uploads import (
    find_dataset_upload,
    load_file_table,
    save_import_mapping,
    store_dataset_upload,
)
from runs.services.errors import DatasetFileRefused, DatasetFull
from runs.ui.format import number
from runs.views.datasets.import_preview import DUPLICATE_RULES, build_import_preview
from runs.views.datasets.page import (
    build_dataset_context,
    build_examples_context,
    get_editable_dataset,
)


@require_POST
def dataset_upload(request: HtmxRequest, pk: int) -> HttpResponse:
    """Store an uploaded file for its preview; nothing is imported yet."""
    dataset = get_editable_dataset(request, pk)
    try:
        store_uploaded_file(request, dataset)
    except DatasetFileRefused as refused:
        former = find_dataset_upload(dataset, by=request.user)
        if former is not None and request.FILES:  # it would be imported by mistake
            former.delete()
        return render_refused_file(request, dataset, str(refused))
    return redirect(get_import_url(dataset))


def store_uploaded_file(request: HtmxRequest, dataset: Dataset) -> None:
    """Parse and store the file of the request; raise `DatasetFileRefused`."""
    file = request.FILES.get("file")
    if file is None:
        raise DatasetFileRefused(_("Select a file."))
    check_file_size(file.size or 0)
    store_dataset_upload(
        dataset, by=request.user, name=file.name or "", content=file.read()
    )


def render_refused_file(
    request: HtmxRequest, dataset: Dataset, problem: str
) -> HttpResponse:
    """Show the page of the dataset with what is wrong with the file."""
    context = build_examples_context(request, dataset)
    context |= build_dataset_context(request, dataset)
    context |= {"file_problem": problem, "view": 2}
    return render(request, "datasets/detail.html", context)


@require_POST
def dataset_import(request: HtmxRequest, pk: int) -> HttpResponse:
    """Preview the import with another mapping, do it, or cancel it."""
    dataset = get_editable_dataset(request, pk)
    upload = find_dataset_upload(dataset, by=request.user)
    if upload is None:
        messages.error(request, _("The file is no longer here. Upload it again."))
        return redirect(get_import_url(dataset))
    do = request.POST.get("do", "preview")
    if do == "cancel":
        upload.delete()
        return redirect(get_import_url(dataset))
    save_import_mapping(upload, parse_mapping(request.POST, dataset, upload))
    if do != "import":
        return render_preview(request, dataset, upload)
    try:
        counts = import_upload(dataset, upload, by=request.user)
    except (DatasetFileRefused, DatasetFull) as refused:
        messages.error(request, str(refused))
        return redirect(get_import_url(dataset))
    messages.success(request, describe_import(counts))
    return redirect("dataset-detail", pk=pk)


def render_preview(
    request: HtmxRequest, dataset: Dataset, upload: DatasetUpload
) -> HttpResponse:
    if not wants_part(request):
        return redirect(get_import_url(dataset))
    preview = build_import_preview(dataset, upload)
    context = {"dataset": dataset, "upload": upload, "preview": preview}
    return render(request, "datasets/_import.html", context)


def parse_mapping(
    form: QueryDict, dataset: Dataset, upload: DatasetUpload
) -> ImportMapping:
    """Return the mapping of the form; raise 404 for fields that it does not offer."""
    fields = []
    for position, column in enumerate(load_file_table(upload).columns):
        field = form.get(f"column-{position}", "")
        if field not in dict(list_field_options(column, dataset.input_names)):
            raise Http404
        fields.append(field)
    rule = form.get("duplicates", "skip")
    if rule not in dict(DUPLICATE_RULES):
        raise Http404
    return ImportMapping.model_validate({"fields": fields, "duplicates": rule})


def describe_import(counts: ImportCounts) -> str:
    parts = [
        ngettext("%(count)s example added.", "%(count)s examples added.", counts.added)
        % {"count": number(counts.added)}
    ]
    if counts.updated:
        parts.append(
            ngettext(
                "%(count)s example updated.",
                "%(count)s examples updated.",
                counts.updated,
            )
            % {"count": number(counts.updated)}
        )
    if counts.skipped:
        parts.append(
            ngettext(
                "%(count)s duplicate skipped.",
                "%(count)s duplicates skipped.",
                counts.skipped,
            )
            % {"count": number(counts.skipped)}
        )
    parts.append(_("Save the version to use them."))
    return " ".join(parts)


def get_import_url(dataset: Dataset) -> str:
    """Return the page of the dataset, on a phone with the import open."""
    return f"{reverse('dataset-detail', args=[dataset.pk])}?view=import"
