"""The calls that the runs of an experiment would have made."""

from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest
from runs.models import AgentStep
from runs.services.experiments.calls import select_calls
from runs.ui.list_search import get_search_text, search_rows
from runs.views.experiments.page import get_visible_experiment

CALLS_PER_PAGE = 50
AnsweredBy = AgentStep.AnsweredBy


@require_GET
def experiment_held_back(request: HtmxRequest, pk: int) -> HttpResponse:
    """List the calls with their arguments; search is in the name of the tool."""
    words = {
        "title": _("Calls held back"),
        "note": _("These calls were not made. A real run would have sent them."),
        "none": _("No calls were held back"),
        "none_note": _("The runs have made no calls that the tool mode holds back."),
    }
    return render_calls(request, pk, AnsweredBy.HELD_BACK, words)


@require_GET
def experiment_not_recorded(request: HtmxRequest, pk: int) -> HttpResponse:
    """List the calls that a replay could not answer, in the same way."""
    words = {
        "title": _("Calls without a recording"),
        "note": _(
            "These calls were not made: the source run of the example has no answer "
            "to them, or the example has no source run."
        ),
        "none": _("No calls without a recording"),
        "none_note": _("All calls of the runs were answered."),
    }
    return render_calls(request, pk, AnsweredBy.NO_RECORDING, words)


def render_calls(
    request: HtmxRequest, pk: int, answered_by: str, words: dict[str, str]
) -> HttpResponse:
    experiment = get_visible_experiment(request, pk)
    text = get_search_text(request)
    rows = search_rows(select_calls(experiment, answered_by), text, "tool")
    page = Paginator(rows, CALLS_PER_PAGE).get_page(request.GET.get("page"))
    context: dict[str, Any] = {
        "experiment": experiment,
        "words": words,
        "page": page,
        "q": text,
        "page_query": f"?{urlencode({'q': text})}",
    }
    return render(request, "experiments/unsent_calls.html", context)
