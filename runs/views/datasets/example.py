"""One example: its form, its cells in the table, removing and restoring it."""

from typing import NamedTuple

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from runs.forms.datasets.example import ExampleForm
from runs.htmx import HtmxRequest, get_return_url, wants_part
from runs.models import Dataset, Example
from runs.services.datasets.content import (
    INPUT_FIELD,
    MAX_CELL_CHARS,
    ExampleContent,
    get_cell_text,
    set_cell_text,
)
from runs.services.datasets.edit import (
    add_examples,
    remove_example,
    remove_examples,
    restore_example,
    restore_examples,
)
from runs.services.datasets.edit_cells import edit_cells, get_cell_token
from runs.services.datasets.working_copy import (
    count_unsaved_changes,
    find_working_example,
    load_saved_examples,
)
from runs.services.errors import DatasetFull, ExampleConflict, ExampleRefused
from runs.ui.frame.undo import add_message_with_undo
from runs.views.datasets.page import get_editable_dataset
from runs.views.datasets.rows import build_example_row, build_example_rows
from runs.views.lists.selection import MAX_SELECTED_ROWS
from runs.whole_number import parse_whole_number

NEW_EXAMPLE = 0
"""The number of an example that the table adds with the text of its first cell."""


class EditedCell(NamedTuple):
    number: int
    field: str
    style: str
    text: str
    seen: str
    """Token of the text when the cell was opened."""
    problem: str = ""
    max_chars: int = MAX_CELL_CHARS


@require_http_methods(["GET", "POST"])
def dataset_example_create(request: HtmxRequest, pk: int) -> HttpResponse:
    dataset = get_editable_dataset(request, pk)
    form = ExampleForm(dataset.input_names, ExampleContent(), request.POST or None)
    if form.is_valid():
        try:
            [row] = add_examples(dataset, [form.content], by=request.user)
        except DatasetFull as refused:
            form.add_service_error(refused)
        else:
            messages.success(
                request, _("Example %(number)d added.") % {"number": row.number}
            )
            return redirect("dataset-detail", pk=pk)
    context = {"dataset": dataset, "form": form, "example": None}
    return render(request, "datasets/example.html", context)


@require_http_methods(["GET", "POST"])
def dataset_example(request: HtmxRequest, pk: int, number: int) -> HttpResponse:
    dataset = get_editable_dataset(request, pk)
    example = get_example(dataset, number)
    content = ExampleContent.of(example)
    form = ExampleForm(dataset.input_names, content, request.POST or None)
    if form.is_valid():
        try:
            store_cells(request, dataset, number, texts=form.texts, seen=form.seen)
        except ExampleConflict as conflict:
            form.add_conflict(conflict)
        except ExampleRefused as refused:
            form.add_service_error(refused)
        else:
            text = _("Example %(number)d changed.") % {"number": number}
            messages.success(request, text)
            return redirect(get_row_url(dataset, number))
    context = {
        "dataset": dataset,
        "form": form,
        "example": example,
        "is_saved": bool(load_saved_examples(dataset, [number])),
    }
    return render(request, "datasets/example.html", context)


@require_http_methods(["GET", "POST"])
def dataset_cell(request: HtmxRequest, pk: int, number: int) -> HttpResponse:
    """Return the editor of a cell; POST stores it and returns the row.

    For a new example that editor comes in a row of its own.
    """
    dataset = get_editable_dataset(request, pk)
    content = ExampleContent.of(find_edited_example(dataset, number))
    name = request.POST.get("field") or request.GET.get("field", "")
    field = get_cell_field(dataset, name)
    text = get_cell_text(content, field)
    seen = request.POST.get("seen") or get_cell_token(text)
    editing = EditedCell(number, field, get_cell_style(field), text, seen)
    if request.method == "POST":
        return save_cell(request, dataset, editing)
    if number == NEW_EXAMPLE:
        return render_row(request, dataset, number, editing)
    if not wants_part(request):
        return redirect("dataset-example", pk=pk, number=number)
    context = {"dataset": dataset, "editing": editing}
    return render(request, "datasets/_cell.html", context)


def save_cell(
    request: HtmxRequest, dataset: Dataset, editing: EditedCell
) -> HttpResponse:
    """Store a cell and return its row; a refused text stays in its editor."""
    number, field, text = editing.number, editing.field, request.POST.get("text", "")
    try:
        if number == NEW_EXAMPLE:
            content = set_cell_text(ExampleContent(), field, text)
            [added] = add_examples(dataset, [content], by=request.user)
            return render_row(request, dataset, added.number)
        seen = {field: editing.seen}
        store_cells(request, dataset, number, texts={field: text}, seen=seen)
    except (DatasetFull, ExampleRefused) as refused:
        editing = editing._replace(text=text, problem=str(refused))
        if isinstance(refused, ExampleConflict):  # saving again replaces that
            editing = editing._replace(seen=get_cell_token(refused.stored[field]))
        return render_row(request, dataset, number, editing)
    return render_row(request, dataset, number)


def store_cells(
    request: HtmxRequest,
    dataset: Dataset,
    number: int,
    *,
    texts: dict[str, str],
    seen: dict[str, str],
) -> None:
    """Store the edited cells; raise 404 if the example was removed meanwhile."""
    try:
        edit_cells(dataset, number, texts, seen=seen, by=request.user)
    except Example.DoesNotExist:
        raise Http404 from None


@require_POST
def dataset_example_remove(request: HtmxRequest, pk: int, number: int) -> HttpResponse:
    """Remove an example, or with `restore=1` undo its unsaved change."""
    dataset = get_editable_dataset(request, pk)
    example = get_example(dataset, number)
    if request.POST.get("restore") == "1":
        restore_example(dataset, number)
        return redirect(get_row_url(dataset, number))
    remove_example(dataset, number, by=request.user)
    text = _("Example %(number)d removed.") % {"number": number}
    if example.change:  # its unsaved change is lost
        messages.success(request, text)
    else:
        url = reverse("dataset-examples-remove", args=[pk])
        here = get_row_url(dataset, number)
        add_message_with_undo(
            request, text, url, pick=[str(number)], restore="1", here=here
        )
    if example.change == Example.Change.ADDED:
        return redirect("dataset-detail", pk=pk)
    return redirect(get_row_url(dataset, number))


@require_POST
def dataset_examples_remove(request: HtmxRequest, pk: int) -> HttpResponse:
    """Remove the selected examples, or with `restore=1` undo that."""
    dataset = get_editable_dataset(request, pk)
    picked = {parse_whole_number(text) for text in request.POST.getlist("pick")}
    numbers = sorted(number for number in picked if number is not None)
    if not numbers:
        messages.error(request, _("Select rows in the list first."))
    elif len(numbers) > MAX_SELECTED_ROWS:
        text = _("Select at most %(count)s rows. Nothing was changed.")
        messages.error(request, text % {"count": MAX_SELECTED_ROWS})
    elif request.POST.get("restore") == "1":
        count = restore_examples(dataset, numbers)
        text = ngettext(
            "%(count)s example restored.", "%(count)s examples restored.", count
        )
        level = messages.SUCCESS if count else messages.ERROR
        messages.add_message(request, level, text % {"count": count})
    else:
        removed = remove_examples(dataset, numbers, by=request.user)
        report_removed_examples(request, dataset, removed)
    return redirect(get_return_url(request, reverse("dataset-detail", args=[pk])))


def report_removed_examples(
    request: HtmxRequest, dataset: Dataset, removed: list[Example]
) -> None:
    """Say how many; with an undo if no unsaved change was lost."""
    text = ngettext(
        "%(count)s example removed.", "%(count)s examples removed.", len(removed)
    ) % {"count": len(removed)}
    if not removed or any(example.change for example in removed):
        messages.add_message(
            request, messages.SUCCESS if removed else messages.ERROR, text
        )
        return
    add_message_with_undo(
        request,
        text,
        reverse("dataset-examples-remove", args=[dataset.pk]),
        pick=[str(example.number) for example in removed],
        restore="1",
        here=get_return_url(request, reverse("dataset-detail", args=[dataset.pk])),
    )


def get_example(dataset: Dataset, number: int) -> Example:
    """Return an example with its unsaved change; otherwise raise 404."""
    example = find_working_example(dataset, number)
    if example is None:
        raise Http404
    return example


def find_edited_example(dataset: Dataset, number: int) -> Example:
    """Return an example, an empty one if it is new; otherwise raise 404."""
    if number == NEW_EXAMPLE:
        return Example(dataset=dataset, number=number, change=Example.Change.ADDED)
    return get_example(dataset, number)


def get_cell_field(dataset: Dataset, name: str) -> str:
    """Return the name if it is a cell of the dataset; otherwise raise 404."""
    inputs = [INPUT_FIELD + one for one in dataset.input_names]
    if name not in (*inputs, "answer", "calls", "tags"):
        raise Http404
    return name


def get_cell_style(field: str) -> str:
    styles = {"answer": "c-exp", "calls": "c-calls", "tags": "tags"}
    return styles.get(field, "c-in")


def get_row_url(dataset: Dataset, number: int) -> str:
    return f"{reverse('dataset-detail', args=[dataset.pk])}#dataset-row-{number}"


def render_row(
    request: HtmxRequest,
    dataset: Dataset,
    number: int,
    editing: EditedCell | None = None,
) -> HttpResponse:
    """Return the row as it is now, with the bar of unsaved changes beside it."""
    if not wants_part(request):
        return redirect(get_row_url(dataset, number))
    example = find_edited_example(dataset, number)
    if number == NEW_EXAMPLE:
        row = build_example_row(example, dataset.input_names)
    else:
        [row] = build_example_rows(dataset, [example], user=request.user)
    context = {
        "dataset": dataset,
        "row": row,
        "editing": editing,
        "may_edit": True,
        "changes": count_unsaved_changes(dataset),
        "next_version": dataset.version + 1,
    }
    return render(request, "datasets/_edited.html", context)
