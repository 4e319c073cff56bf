"""Lists of runs that one wants to come back to."""

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from runs.htmx import HtmxRequest
from runs.models import SavedFilter
from runs.views.run_filters import read_filters

MOST = 30
LONGEST = 10_000
"""Characters of an address that are read; far more than are kept."""


@require_POST
def saved_filter_create(request: HtmxRequest) -> HttpResponse:
    """Keep the filters of a list under a name; the same name is replaced."""
    asked, _ = read_filters(QueryDict(request.POST.get("query", "")[:LONGEST]))
    query = asked.address().removeprefix("?")
    name = " ".join(request.POST.get("name", "").replace("\0", "").split())
    back = redirect(f"{reverse('run-list')}?{query}")
    mine = SavedFilter.objects.filter(owner=request.user)
    if not name or len(name) > 60:
        messages.error(request, "Give the list a name of 1 to 60 characters.")
    elif not asked.any and not asked.sort:
        messages.error(request, "This list is not filtered, there is nothing to keep.")
    elif len(query) > 1000:
        messages.error(request, "These filters are too long to be kept.")
    elif mine.exclude(name=name).count() >= MOST:
        messages.error(request, f"You have {MOST} lists. Remove one first.")
    else:
        SavedFilter.objects.update_or_create(
            owner=request.user, name=name, defaults={"query": query}
        )
        messages.success(request, f"The list is kept as {name}.")
    return back


@require_POST
def saved_filter_delete(request: HtmxRequest, pk: int) -> HttpResponse:
    """Forget one of one's own lists."""
    found = get_object_or_404(SavedFilter, pk=pk, owner=request.user)
    found.delete()
    messages.success(request, f"The list {found.name} is removed.")
    return redirect("run-list")
