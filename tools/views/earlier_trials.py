"""The earlier calls of a tool that the test pane lists, and loading one."""

from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.translation import gettext as _

from tools.audit.masking import drop_secret_masks
from tools.models import Tool, ToolTrial
from tools.ui.argument_rows import shorten_arguments

SHOWN_TRIALS = 6


class EarlierTrial(NamedTuple):
    """An earlier call, with its arguments in one line."""

    trial: ToolTrial
    arguments: str


class LoadedTrial(NamedTuple):
    """What is shown of an earlier call that a person selected."""

    values: Any = None
    """Its arguments without secrets; None if they cannot be loaded."""
    stored: Any = None
    """Its arguments as they are stored: a mask stands for each secret."""
    note: str = ""
    """Why they cannot be loaded."""


def find_trials(tool: Tool, user: User, draft: str = "") -> QuerySet[ToolTrial]:
    """Return the calls that this person made of a tool, or of one in a form."""
    if tool.pk is None:
        return ToolTrial.objects.filter(tool=None, draft=draft, by=user)
    return ToolTrial.objects.filter(tool=tool, by=user)


def load_trial(
    given: QueryDict, tool: Tool, user: User, draft: str = ""
) -> LoadedTrial | None:
    """Return the earlier call that a request names; None if it names none."""
    if "trial" not in given:
        return None
    trial = find_trial(tool, user, str(given["trial"]), draft)
    if trial is None:
        return LoadedTrial(note=_("This call is no longer stored."))
    if trial.arguments is None:
        note = _("The arguments of this call were too long to be stored.")
        return LoadedTrial(note=note)
    stored = trial.arguments
    return LoadedTrial(drop_secret_masks(stored), stored)


def find_trial(
    tool: Tool, user: User, number: str, draft: str = ""
) -> ToolTrial | None:
    """Return an earlier call of this person, by its number in a query."""
    if not (number.isascii() and number.isdigit()):
        return None
    return find_trials(tool, user, draft).filter(pk=int(number[:18])).first()


def list_trials(tool: Tool, user: User, draft: str) -> list[EarlierTrial]:
    """Return the last calls that this person made."""
    mine = find_trials(tool, user, draft)
    shown = mine.order_by("-at", "-pk")[:SHOWN_TRIALS]
    return [EarlierTrial(trial, shorten_arguments(trial.arguments)) for trial in shown]
