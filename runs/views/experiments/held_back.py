"""The calls that an experiment would have made."""

from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest
from runs.services.experiments.calls import select_held_back_calls
from runs.ui.list_search import get_search_text, search_rows
from runs.views.experiments.page import get_visible_experiment

CALLS_PER_PAGE = 50


@require_GET
def experiment_held_back(request: HtmxRequest, pk: int) -> HttpResponse:
    """List the calls with their arguments; search is in the name of the tool."""
    experiment = get_visible_experiment(request, pk)
    text = get_search_text(request)
    rows = search_rows(select_held_back_calls(experiment), text, "tool")
    page = Paginator(rows, CALLS_PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "experiment": experiment,
        "page": page,
        "q": text,
        "page_query": f"?{urlencode({'q': text})}",
    }
    return render(request, "experiments/held_back.html", context)
