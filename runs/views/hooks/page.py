"""The list of incoming webhooks, the page of one with its log, and its actions."""

from typing import Any, NamedTuple

from django.conf import settings
from django.contrib import messages
from django.db.models import OuterRef, Subquery
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.htmx import HtmxRequest, render_page_or_part, wants_part
from runs.models import Hook, HookRequest
from runs.services.hooks.manage import (
    build_hook_url,
    delete_hook,
    rotate_hook_secret,
    set_hook_enabled,
)
from runs.ui.frame.undo import add_switch_message
from runs.ui.list_search import get_search_text, search_rows
from runs.views.lists.page import render_list
from runs.views.webhooks import pop_new_secret, store_new_secret

MAX_REQUESTS = 50
"""Requests on the page of an incoming webhook."""


class MappedInput(NamedTuple):
    """A variable and the text that becomes its value."""

    name: str
    template: str


@require_GET
def hook_list(request: HtmxRequest) -> HttpResponse:
    newest = HookRequest.objects.filter(hook=OuterRef("pk")).order_by("-pk")
    rows = (
        Hook.objects.visible_to(request.user)
        .select_related("owner", "agent")
        .annotate(
            last_at=Subquery(newest.values("created_at")[:1]),
            last_outcome=Subquery(newest.values("outcome")[:1]),
        )
        .order_by("name", "pk")
    )
    query = get_search_text(request)
    return render_list(
        request,
        "hook",
        rows=search_rows(rows, query, "name", "agent__name", "owner__username"),
        q=query,
        shows_owners=request.user.is_superuser,
        actions=["pause", "resume", "delete"],
    )


@require_GET
@never_cache
def hook_detail(request: HtmxRequest, pk: int) -> HttpResponse:
    hook = get_visible_hook(request, pk)
    context: dict[str, Any] = {
        "hook": hook,
        "url": build_hook_url(hook),
        "is_local": settings.IS_LOCAL,
        "inputs": [MappedInput(*pair) for pair in hook.inputs.items()],
        "requests": hook.requests.order_by("-pk")[:MAX_REQUESTS],
    }
    if not wants_part(request):
        context["secret"] = pop_new_secret(request, hook)
    return render_page_or_part(
        request, "hooks/detail.html", "hooks/_requests.html", context
    )


@require_POST
def hook_switch(request: HtmxRequest, pk: int) -> HttpResponse:
    hook = get_visible_hook(request, pk)
    is_on = request.POST.get("on") == "1"
    set_hook_enabled(hook, is_on=is_on)
    add_switch_message(request, "hook", hook, is_on=is_on)
    return redirect("hook-detail", pk=pk)


@require_POST
def hook_rotate(request: HtmxRequest, pk: int) -> HttpResponse:
    """Create a new secret; the next page shows it."""
    hook = get_visible_hook(request, pk)
    store_new_secret(request, hook, rotate_hook_secret(hook))
    return redirect("hook-detail", pk=pk)


@require_http_methods(["GET", "POST"])
def hook_delete(request: HtmxRequest, pk: int) -> HttpResponse:
    """Ask for confirmation; POST deletes."""
    hook = get_visible_hook(request, pk)
    if request.method == "POST":
        delete_hook(hook)
        messages.success(
            request,
            _("Incoming webhook %(name)s deleted. Its runs are kept.") % {"name": hook},
        )
        return redirect("hook-list")
    return render(request, "hooks/delete.html", {"hook": hook})


def get_visible_hook(request: HtmxRequest, pk: int) -> Hook:
    """Return a hook that the user may see, and so edit; otherwise raise 404."""
    rows = Hook.objects.visible_to(request.user).select_related("owner", "agent")
    return get_object_or_404(rows, pk=pk)
