"""The columns of the list of runs, which each person selects."""

from collections.abc import Sequence
from typing import NamedTuple

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from runs.htmx import HtmxRequest
from runs.models import Preferences
from runs.views.lists.selection import get_list_url

COLUMN_LABELS = {
    "number": gettext_lazy("Run"),
    "answer": gettext_lazy("Answer"),
    "agent": gettext_lazy("Agent"),
    "rating": gettext_lazy("Rating"),
    "user": gettext_lazy("Started by"),
    "created": gettext_lazy("Started"),
    "seconds": gettext_lazy("Time"),
    "rounds": gettext_lazy("Rounds"),
    "tokens": gettext_lazy("Tokens"),
    "cost": gettext_lazy("Cost"),
}
"""In their order; the input is always shown."""
DEFAULT_COLUMNS = ("answer", "agent", "rating", "created", "seconds", "cost")


class ColumnChoice(NamedTuple):
    name: str
    label: str
    is_on: bool


def get_run_columns(user: User, *, sort: str = "") -> tuple[str, ...]:
    """Return the columns of a person, with that by which the list is sorted."""
    saved = Preferences.objects.filter(user=user).values_list("run_columns", flat=True)
    chosen = parse_columns((saved.first() or "").split(",")) or DEFAULT_COLUMNS
    return parse_columns([*chosen, sort])


def parse_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the known ones of these columns, in their order."""
    return tuple(name for name in COLUMN_LABELS if name in names)


def list_column_choices(columns: Sequence[str]) -> list[ColumnChoice]:
    return [
        ColumnChoice(name, str(label), name in columns)
        for name, label in COLUMN_LABELS.items()
    ]


@require_POST
def run_columns(request: HtmxRequest) -> HttpResponse:
    """Save the columns, and return to the list; without any, the usual ones return."""
    columns = parse_columns(request.POST.getlist("column"))
    saved = "" if columns == DEFAULT_COLUMNS else ",".join(columns)
    Preferences.objects.update_or_create(
        user=request.user, defaults={"run_columns": saved}
    )
    return redirect(get_list_url(request, "run"))
