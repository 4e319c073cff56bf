"""Saved filters of the list of runs."""

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from runs.htmx import HtmxRequest
from runs.models import SavedFilter
from runs.ui.frame.undo import add_message_with_undo
from runs.views.run_list.filters import read_filters

MAX_SAVED_FILTERS = 30
MAX_QUERY_CHARACTERS = 10_000
"""Characters of a query that are parsed; far more than are saved."""


@require_POST
def saved_filter_create(request: HtmxRequest) -> HttpResponse:
    """Save the filters under a name, replacing those of the same name."""
    asked, _problems = read_filters(
        QueryDict(request.POST.get("query", "")[:MAX_QUERY_CHARACTERS])
    )
    query = asked.build_query().removeprefix("?")
    name = " ".join(request.POST.get("name", "").replace("\0", "").split())
    back = redirect(f"{reverse('run-list')}?{query}")
    mine = SavedFilter.objects.filter(owner=request.user)
    if not name or len(name) > 60:
        messages.error(request, _("Enter a name of 1 to 60 characters."))
    elif not asked.is_filtered and not asked.sort:
        messages.error(request, _("Set a filter first. Nothing was saved."))
    elif len(query) > 1000:
        messages.error(request, _("These filters are too long to save."))
    elif mine.exclude(name=name).count() >= MAX_SAVED_FILTERS:
        text = _("You have %(count)s saved filters. Delete one first.")
        messages.error(request, text % {"count": MAX_SAVED_FILTERS})
    else:
        SavedFilter.objects.update_or_create(
            owner=request.user, name=name, defaults={"query": query}
        )
        messages.success(request, _("Filter %(name)s saved.") % {"name": name})
    return back


@require_POST
def saved_filter_delete(request: HtmxRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(SavedFilter, pk=pk, owner=request.user)
    found.delete()
    add_message_with_undo(
        request,
        _("Filter %(name)s deleted.") % {"name": found.name},
        reverse("saved-filter-create"),
        name=found.name,
        query=found.query,
    )
    return redirect("run-list")
