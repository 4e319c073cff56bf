"""The page that checks limits and approval rules of the draft against stored runs."""

from typing import NamedTuple

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest
from runs.models import Agent
from runs.services.gates.check_policy import (
    DAYS,
    MAX_DAYS,
    CheckedRun,
    check_policy,
)
from runs.ui.run_list_rows import STOP_REASON_NOTES
from runs.whole_number import parse_whole_number

MAX_SHOWN = 100
CHANGE_LABELS = {
    "stops": gettext_lazy("Would stop earlier"),
    "refused": gettext_lazy("Calls refused"),
    "asks": gettext_lazy("Would await approval"),
    "asks_no_more": gettext_lazy("No longer awaits approval"),
    "goes_on": gettext_lazy("Would continue"),
}
CHANGE_TONES = {"stops": "bad", "refused": "bad", "asks": "need"}


class ChangePart(NamedTuple):
    """A change, and how many runs have it."""

    change: str
    label: str
    runs: int


@require_GET
def agent_policy(request: HtmxRequest, pk: int) -> HttpResponse:
    """Say what the draft would have decided in the runs of the last days."""
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    given = request.GET.get("days", "")
    days = parse_whole_number(given) if given else DAYS
    if days is None or not 1 <= days <= MAX_DAYS:
        error = _("Enter a number of days from 1 to %(limit)d.") % {"limit": MAX_DAYS}
        days = DAYS
    else:
        error = ""
    check = check_policy(agent, by=request.user, days=days)
    counts = check.counts
    shown = request.GET.get("show", "")
    shown = shown if counts[shown] and shown in CHANGE_LABELS else ""
    matching = [one for one in check.runs if not shown or one.change == shown]
    context = {
        "agent": agent,
        "check": check,
        "days": given if error else days,
        "error": error,
        "max_days": MAX_DAYS,
        "unchanged": counts["same"],
        "parts": [
            ChangePart(change, str(label), counts[change])
            for change, label in CHANGE_LABELS.items()
            if counts[change]
        ],
        "shown": shown,
        "rows": [
            (
                one,
                CHANGE_LABELS[one.change],
                CHANGE_TONES.get(one.change, ""),
                describe_checked_run(one),
            )
            for one in matching[:MAX_SHOWN]
        ],
        "hidden": max(len(matching) - MAX_SHOWN, 0),
    }
    return render(request, "gates/policy.html", context)


def describe_checked_run(one: CheckedRun) -> str:
    """Return the limit, or the tools whose calls are decided differently."""
    if one.stop_reason:
        return str(STOP_REASON_NOTES.get(one.stop_reason, _("Limit reached")))
    return ", ".join(one.tools)
