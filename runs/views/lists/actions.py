"""The lists whose rows can be selected, and what can be done with these rows.

Agents, runs and tools have more actions, and views of their own.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils.translation import ngettext

from runs.models import PromptTemplate, Provider, Schedule, Webhook
from runs.services.agents.manage import archive_definition, unarchive_definition
from runs.services.schedules.save import pause_schedule, resume_schedule
from runs.services.webhooks.manage import set_webhook_enabled


class RowAction(NamedTuple):
    """What can be done with the selected rows."""

    change: Callable[[Any], object]
    """Returns False if the row has changed meanwhile."""
    is_due: Callable[[Any], bool]
    """Whether a row can change; the others are left alone."""
    describe: Callable[[int], str]
    describe_left: Callable[[int], str]
    """Says why rows were left alone."""
    reverse: str = ""
    """The action that undoes it."""


class RowList(NamedTuple):
    """A list whose rows can be selected."""

    visible: Callable[[User], QuerySet[Any]]
    editable: Callable[[User], QuerySet[Any]]
    actions: dict[str, RowAction]


ARCHIVE_ACTIONS = {
    "archive": RowAction(
        archive_definition,
        lambda row: row.archived_at is None,
        lambda n: ngettext("%(count)s archived.", "%(count)s archived.", n),
        lambda n: ngettext(
            "%(names)s was already archived.", "%(names)s were already archived.", n
        ),
        "unarchive",
    ),
    "unarchive": RowAction(
        unarchive_definition,
        lambda row: row.archived_at is not None,
        lambda n: ngettext("%(count)s restored.", "%(count)s restored.", n),
        lambda n: ngettext(
            "%(names)s was not archived.", "%(names)s were not archived.", n
        ),
        "archive",
    ),
}


def build_pause_actions(
    pause: Callable[[Any], object],
    resume: Callable[[Any], object],
    is_on: Callable[[Any], bool],
) -> dict[str, RowAction]:
    """Return the two actions on rows that can be paused."""
    return {
        "pause": RowAction(
            pause,
            is_on,
            lambda n: ngettext("%(count)s paused.", "%(count)s paused.", n),
            lambda n: ngettext(
                "%(names)s was already paused.", "%(names)s were already paused.", n
            ),
            "resume",
        ),
        "resume": RowAction(
            resume,
            lambda row: not is_on(row),
            lambda n: ngettext("%(count)s resumed.", "%(count)s resumed.", n),
            lambda n: ngettext(
                "%(names)s was not paused.", "%(names)s were not paused.", n
            ),
            "pause",
        ),
    }


LISTS = {
    "prompt": RowList(
        PromptTemplate.objects.visible_to,
        PromptTemplate.objects.editable_by,
        ARCHIVE_ACTIONS,
    ),
    "provider": RowList(
        Provider.objects.visible_to, Provider.objects.editable_by, ARCHIVE_ACTIONS
    ),
    "schedule": RowList(
        Schedule.objects.visible_to,
        Schedule.objects.visible_to,
        build_pause_actions(
            pause_schedule, resume_schedule, lambda row: row.next_at is not None
        ),
    ),
    "webhook": RowList(
        Webhook.objects.visible_to,
        Webhook.objects.visible_to,
        build_pause_actions(
            lambda row: set_webhook_enabled(row, is_on=False),
            lambda row: set_webhook_enabled(row, is_on=True),
            lambda row: row.is_on,
        ),
    ),
}
