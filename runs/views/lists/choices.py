"""Actions on the rows that are selected in a list of definitions or settings.

Agents, runs and tools have more actions, and views of their own.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from runs.htmx import HtmxRequest
from runs.models import PromptTemplate, Provider, Schedule, Webhook
from runs.services.agents.manage import archive_definition, unarchive_definition
from runs.services.errors import RunsError
from runs.services.schedules.save import pause_schedule, resume_schedule
from runs.services.webhooks.manage import set_webhook_enabled
from runs.ui.frame.undo import add_message_with_undo
from runs.whole_number import parse_whole_number

MAX_SELECTED_ROWS = 200


class RowAction(NamedTuple):
    """What can be done with the selected rows."""

    change: Callable[[Any], object]
    is_due: Callable[[Any], bool]
    """Whether a row can change; the others are left alone."""
    describe: Callable[[int], str]
    reverse: str = ""
    """The action that undoes it."""


class RowList(NamedTuple):
    """A list whose rows can be selected."""

    select: Callable[[User], QuerySet[Any]]
    actions: dict[str, RowAction]


ARCHIVE = RowAction(
    archive_definition,
    lambda row: row.archived_at is None,
    lambda n: ngettext("%(count)s archived.", "%(count)s archived.", n),
    "unarchive",
)
UNARCHIVE = RowAction(
    unarchive_definition,
    lambda row: row.archived_at is not None,
    lambda n: ngettext("%(count)s restored.", "%(count)s restored.", n),
    "archive",
)
LISTS = {
    "prompt": RowList(
        PromptTemplate.objects.editable_by,
        {"archive": ARCHIVE, "unarchive": UNARCHIVE},
    ),
    "provider": RowList(
        Provider.objects.editable_by, {"archive": ARCHIVE, "unarchive": UNARCHIVE}
    ),
    "schedule": RowList(
        Schedule.objects.visible_to,
        {
            "pause": RowAction(
                pause_schedule,
                lambda row: row.next_at is not None,
                lambda n: ngettext(
                    "%(count)s schedule paused.", "%(count)s schedules paused.", n
                ),
                "resume",
            ),
            "resume": RowAction(
                resume_schedule,
                lambda row: row.next_at is None,
                lambda n: ngettext(
                    "%(count)s schedule resumed.", "%(count)s schedules resumed.", n
                ),
                "pause",
            ),
        },
    ),
    "webhook": RowList(
        Webhook.objects.visible_to,
        {
            "pause": RowAction(
                lambda row: set_webhook_enabled(row, is_on=False),
                lambda row: row.is_on,
                lambda n: ngettext(
                    "%(count)s webhook paused.", "%(count)s webhooks paused.", n
                ),
                "resume",
            ),
            "resume": RowAction(
                lambda row: set_webhook_enabled(row, is_on=True),
                lambda row: not row.is_on,
                lambda n: ngettext(
                    "%(count)s webhook resumed.", "%(count)s webhooks resumed.", n
                ),
                "pause",
            ),
        },
    ),
}


@require_POST
def row_choices(request: HtmxRequest, noun: str) -> HttpResponse:
    """Do `do` with the selected rows that the user may change."""
    chosen = {parse_whole_number(text) for text in request.POST.getlist("pick")}
    known = LISTS[noun]
    action = known.actions.get(request.POST.get("do", ""))
    rows = list(known.select(request.user).filter(pk__in=chosen - {None}))
    if action is None:
        messages.error(request, _("Unknown action. Nothing was changed."))
    elif len(chosen) > MAX_SELECTED_ROWS:
        text = _("Select at most %(count)s rows. Nothing was changed.")
        messages.error(request, text % {"count": MAX_SELECTED_ROWS})
    elif not rows:
        messages.error(request, _("Select rows of yours in the list first."))
    else:
        change_rows(request, noun, action, [row for row in rows if action.is_due(row)])
    return redirect(get_list_url(request, noun))


def change_rows(
    request: HtmxRequest, noun: str, action: RowAction, rows: list[Any]
) -> None:
    """Change the rows one by one, and say how many were changed."""
    done = []
    for row in rows:
        try:
            action.change(row)
        except RunsError as refused:
            messages.error(request, f"{row}: {refused}")
        else:
            done.append(str(row.pk))
    text = action.describe(len(done)) % {"count": len(done)}
    if action.reverse and done:
        add_message_with_undo(
            request,
            text,
            reverse(f"{noun}-choices"),
            pick=done,
            do=action.reverse,
            here=get_list_url(request, noun),
        )
    else:
        messages.success(request, text)


def get_list_url(request: HtmxRequest, noun: str) -> str:
    """Return the URL of the list as it was."""
    here = request.POST.get("here", "")
    is_ours = here.startswith("/") and url_has_allowed_host_and_scheme(here, None)
    return here if is_ours else reverse(f"{noun}-list")
