"""The search over everything: a page, and a part for the palette of all pages."""

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest, render_page_or_part
from runs.ui.context_processors import only_chats
from runs.ui.frame.shortcuts import CALM_CHAT_SHORTCUTS, CHAT_PAGES, list_shortcuts
from runs.ui.list_search import get_search_text
from runs.views.search.places import find_places


@require_GET
def search(request: HtmxRequest) -> HttpResponse:
    """Show what matches `?q=`."""
    text = get_search_text(request)
    groups = find_places(request.user, text)
    count = sum(len(group.results) for group in groups)
    context = {"q": text, "groups": groups, "count": count}
    return render_page_or_part(
        request, "search/search.html", "search/_results.html", context
    )


@require_GET
def shortcut_list(request: HtmxRequest) -> HttpResponse:
    """Show all keyboard shortcuts; as a part, those of `?page=`.

    People who only chat see those of their chat either way.
    """
    page = request.GET.get("page", "")
    if page in CHAT_PAGES and only_chats(request.user):
        groups = CALM_CHAT_SHORTCUTS
    else:
        groups = list_shortcuts(page if request.htmx else "")
    return render_page_or_part(
        request,
        "search/shortcuts.html",
        "search/_shortcuts.html",
        {"groups": groups},
    )
