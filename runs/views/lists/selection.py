"""The selected rows of a list: change them, and say what was not changed."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from runs.htmx import HtmxRequest, get_return_url
from runs.services.errors import RunsError
from runs.ui.frame.undo import add_message_with_undo
from runs.ui.summaries import format_names
from runs.views.lists.actions import LISTS, RowAction
from runs.views.lists.confirm import is_confirmed, render_confirmation
from runs.whole_number import parse_whole_number

MAX_SELECTED_ROWS = 200
MAX_NAMED_ROWS = 10


@require_POST
def row_selection(request: HtmxRequest, noun: str) -> HttpResponse:
    """Do `do` with the selected rows that the user may change."""
    chosen = {parse_whole_number(text) for text in request.POST.getlist("pick")}
    known = LISTS[noun]
    action = known.actions.get(request.POST.get("do", ""))
    if action is None:
        messages.error(request, _("Unknown action. Nothing was changed."))
    elif len(chosen) > MAX_SELECTED_ROWS:
        text = _("Select at most %(count)s rows. Nothing was changed.")
        messages.error(request, text % {"count": MAX_SELECTED_ROWS})
    elif not chosen:
        messages.error(request, _("Select rows in the list first."))
    else:
        pks = chosen - {None}
        visible = list(known.visible(request.user).filter(pk__in=pks))
        rows = list(known.editable(request.user).filter(pk__in=pks))
        is_asked = action.question and rows and not is_confirmed(request)
        if not is_asked:
            change_rows(request, noun, action, rows)
        report_others_rows(request, [row for row in visible if row not in rows])
        report_missing_rows(request, len(chosen) - len(visible))
        if is_asked:
            return confirm_change(request, noun, request.POST["do"], rows)
    return redirect(get_list_url(request, noun))


def confirm_change(
    request: HtmxRequest, noun: str, do: str, rows: list[Any]
) -> HttpResponse:
    """Show the rows and what is lost, and ask."""
    action = LISTS[noun].actions[do]
    assert action.question is not None
    return render_confirmation(
        request,
        question=action.question(len(rows)) % {"count": len(rows)},
        effect=action.effect,
        do=do,
        here=get_list_url(request, noun),
        url=reverse(f"{noun}-selection"),
        rows=[(row.pk, LISTS[noun].describe_row(row)) for row in rows],
    )


def change_rows(
    request: HtmxRequest, noun: str, action: RowAction, rows: list[Any]
) -> None:
    """Change the rows one by one; say how many were changed, and why others not."""
    done: list[Any] = []
    left: list[Any] = []
    for row in rows:
        try:
            is_changed = (
                action.is_due(row) and action.change(row, request.user) is not False
            )
        except RunsError as refused:
            messages.error(request, f"{row}: {refused}")
        else:
            (done if is_changed else left).append(row)
    text = action.describe(len(done)) % {"count": len(done)}
    if action.reverse and done:
        add_message_with_undo(
            request,
            text,
            reverse(f"{noun}-selection"),
            pick=[str(row.pk) for row in done],
            do=action.reverse,
            here=get_list_url(request, noun),
        )
    elif done:
        messages.success(request, text)
    if left:
        report_unchanged_rows(request, action.describe_left(len(left)), left)


def report_unchanged_rows(request: HtmxRequest, sentence: str, rows: list[Any]) -> None:
    """Say a sentence about `names` of rows that needed no change."""
    messages.info(request, sentence % {"names": name_rows(rows)})


def report_others_rows(request: HtmxRequest, rows: list[Any]) -> None:
    """Name the rows that the user sees but may not change."""
    if rows:
        text = ngettext(
            "%(names)s was not changed: only its owner can do this.",
            "%(names)s were not changed: only their owners can do this.",
            len(rows),
        )
        messages.error(request, text % {"names": name_rows(rows)})


def report_missing_rows(request: HtmxRequest, count: int) -> None:
    if count:
        text = ngettext(
            "%(count)s selected row was not found. It may have been deleted.",
            "%(count)s selected rows were not found. They may have been deleted.",
            count,
        )
        messages.error(request, text % {"count": count})


def name_rows(rows: list[Any]) -> str:
    return format_names([str(row) for row in rows], at_most=MAX_NAMED_ROWS)


def get_list_url(request: HtmxRequest, noun: str) -> str:
    page = (noun in LISTS and LISTS[noun].page) or f"{noun}-list"
    return get_return_url(request, reverse(page))
