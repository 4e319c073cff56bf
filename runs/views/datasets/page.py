"""The page of a dataset: its examples, versions and unsaved changes."""

from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from runs.htmx import HtmxRequest, render_page_or_part
from runs.models import Dataset, Example
from runs.services.datasets.edit import discard_changes
from runs.services.datasets.save_version import save_dataset_version
from runs.services.datasets.uploads import find_dataset_upload
from runs.services.datasets.working_copy import (
    count_unsaved_changes,
    select_examples,
)
from runs.services.errors import VersionRefused
from runs.ui.format import number
from runs.ui.list_search import encode_query, get_search_text
from runs.views.datasets.import_preview import build_import_preview
from runs.views.datasets.rows import build_example_window
from runs.views.lists.confirm import is_confirmed, render_confirmation
from runs.whole_number import parse_whole_number

MAX_LISTED_VERSIONS = 50
OTHER_COLUMNS = 6
"""Besides the inputs: number, expected answer and calls, tags, source, results."""


@require_GET
def dataset_detail(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the examples; for htmx only those after a search, a filter or more rows."""
    dataset = get_visible_dataset(request, pk)
    context = build_examples_context(request, dataset)
    if "from" in request.GET and request.htmx:
        return render(request, "datasets/_rows.html", context)
    return render_page_or_part(
        request,
        "datasets/detail.html",
        "datasets/_examples.html",
        context | build_dataset_context(request, dataset),
    )


@require_POST
def dataset_save(request: HtmxRequest, pk: int) -> HttpResponse:
    """Save the unsaved changes as the next version."""
    dataset = get_editable_dataset(request, pk)
    seen = parse_whole_number(request.POST.get("seen", ""))
    try:
        version = save_dataset_version(
            dataset, seen=dataset.version if seen is None else seen, by=request.user
        )
    except VersionRefused as refused:
        messages.error(request, str(refused))
    else:
        messages.success(
            request,
            ngettext(
                "Version %(number)d saved, with %(count)s example.",
                "Version %(number)d saved, with %(count)s examples.",
                version.example_count,
            )
            % {"number": version.number, "count": number(version.example_count)},
        )
    return redirect("dataset-detail", pk=pk)


@require_POST
def dataset_discard(request: HtmxRequest, pk: int) -> HttpResponse:
    dataset = get_editable_dataset(request, pk)
    changes = count_unsaved_changes(dataset).total
    if changes and not (
        is_confirmed(request) and request.GET.get("changes") == str(changes)
    ):
        question = ngettext(
            "Discard %(count)s change of %(dataset)s?",
            "Discard %(count)s changes of %(dataset)s?",
            changes,
        )
        return render_confirmation(
            request,
            question=question % {"count": changes, "dataset": dataset.name},
            effect=_("What is not saved as a version is lost."),
            do="discard",
            here=reverse("dataset-detail", args=[pk]),
            url=f"{request.path}?changes={changes}",
        )
    count = discard_changes(dataset)
    messages.success(
        request,
        ngettext("%(count)s change discarded.", "%(count)s changes discarded.", count)
        % {"count": count},
    )
    return redirect("dataset-detail", pk=pk)


def get_visible_dataset(request: HtmxRequest, pk: int) -> Dataset:
    """Return a dataset that the user may see; otherwise raise 404."""
    rows = Dataset.objects.visible_to(request.user).select_related("owner")
    return get_object_or_404(rows, pk=pk)


def get_editable_dataset(request: HtmxRequest, pk: int) -> Dataset:
    """Return a dataset that the user may edit; otherwise raise 404."""
    return get_object_or_404(Dataset.objects.editable_by(request.user), pk=pk)


def may_edit_dataset(request: HtmxRequest, dataset: Dataset) -> bool:
    rows = Dataset.objects.editable_by(request.user)
    return dataset.archived_at is None and rows.filter(pk=dataset.pk).exists()


def build_dataset_context(request: HtmxRequest, dataset: Dataset) -> dict[str, Any]:
    upload = find_dataset_upload(dataset, by=request.user)
    versions = dataset.versions.select_related("by")[:MAX_LISTED_VERSIONS]
    return {
        "versions": versions,
        "upload": upload,
        "preview": build_import_preview(dataset, upload) if upload else None,
        "view": 2 if request.GET.get("view") == "import" else 1,
        "is_editable": Dataset.objects.editable_by(request.user)
        .filter(pk=dataset.pk)
        .exists(),
    }


def build_examples_context(request: HtmxRequest, dataset: Dataset) -> dict[str, Any]:
    """Return the examples for the query: version, search, tag, changes, window."""
    number = find_shown_version(request, dataset)
    may_edit = number is None
    examples = select_examples(dataset, number)
    changes = count_unsaved_changes(dataset) if may_edit else None
    query, tag = get_search_text(request), request.GET.get("tag", "").replace("\0", "")
    only_changed = request.GET.get("show") == "changed" and bool(changes)
    kept = {"version": request.GET.get("version", ""), "q": query}
    start = parse_whole_number(request.GET.get("from", "")) or 0
    return {
        "dataset": dataset,
        "number": dataset.version if number is None else number,
        "may_edit": may_edit,
        "changes": changes,
        "next_version": dataset.version + 1,
        "q": query,
        "tag": tag,
        "only_changed": only_changed,
        "kept": encode_query(kept),
        "filter_query": encode_query(
            {**kept, "tag": tag, "show": "changed" if only_changed else ""}
        ),
        "total": examples.count(),
        "actions": ["remove"],
        "column_count": len(dataset.input_names) + OTHER_COLUMNS,
        "window": build_example_window(
            dataset,
            filter_examples(examples, query, only_changed=only_changed),
            user=request.user,
            tag=tag,
            start=start,
        ),
    }


def find_shown_version(request: HtmxRequest, dataset: Dataset) -> int | None:
    """Return the saved version to show; None for the examples with unsaved changes."""
    asked = parse_whole_number(request.GET.get("version", ""))
    if asked is not None:
        if not 1 <= asked <= dataset.version:
            raise Http404
        return asked
    return None if may_edit_dataset(request, dataset) else dataset.version


def filter_examples(
    examples: "QuerySet[Example]", query: str, *, only_changed: bool
) -> "QuerySet[Example]":
    """Return the examples that have each word of the search."""
    for word in query.lower().split():
        examples = examples.filter(search_text__contains=word)
    return examples.exclude(change="") if only_changed else examples
