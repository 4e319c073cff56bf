"""The run before or after one, in the list in which it was opened."""

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest
from runs.models import Run
from runs.ui.list_of_run import (
    LISTED_PARAMETER,
    MAX_LIST_CHARACTERS,
    build_list_query,
)
from runs.views.run_list.filters import read_filters
from runs.views.run_list.pagination import (
    PageCursor,
    build_run_queries,
    fetch_runs_after,
    fetch_runs_before,
    merge_run_lists,
)


@require_GET
def run_neighbor(request: HtmxRequest, pk: int, direction: str) -> HttpResponse:
    """Open the run above or below in the list; at its end, stay and say so."""
    if direction not in ("previous", "next"):
        raise Http404
    is_above = direction == "previous"
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    listed = request.GET.get(LISTED_PARAMETER, "")[:MAX_LIST_CHARACTERS]
    found = find_neighbor(run, listed, user=request.user, is_above=is_above)
    if found is None:
        messages.info(
            request,
            _("This is the first run of the list.")
            if is_above
            else _("This is the last run of the list."),
        )
    address = reverse("run-detail", args=[found or pk])
    return redirect(f"{address}{build_list_query(listed)}")


def find_neighbor(run: Run, listed: str, *, user: User, is_above: bool) -> int | None:
    """Return the nearest run above or below in a list, given by its query string."""
    filters, _problems = read_filters(QueryDict(listed))
    queries = build_run_queries(Run.objects.visible_to(user), filters, user=user)
    place = find_list_place(run, filters.sort)
    if place is None:
        return None
    fetch = fetch_runs_before if is_above else fetch_runs_after
    found = merge_run_lists(
        [
            fetch(query, place, filters.sort, most=1, gather=filters.is_far_back)
            for query in queries
        ],
        sign=1 if is_above else -1,
    )
    return found[0].pk if found else None


def find_list_place(run: Run, sort: str) -> PageCursor | None:
    """Return where the run stands in a list; None if it has no place in its order."""
    if not sort:
        return PageCursor(None, run.pk)
    value = Run.objects.filter(pk=run.pk).values_list(f"search_row__{sort}", flat=True)
    return None if value[0] is None else PageCursor(value[0], run.pk)
