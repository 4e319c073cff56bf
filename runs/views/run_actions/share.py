"""Share links of a run: create, revoke, and the page they open."""

from threading import BoundedSemaphore
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.forms.runs.share_link import ShareLinkForm
from runs.htmx import HtmxRequest
from runs.models import Run, RunShare
from runs.services.errors import CannotShare
from runs.services.runs.share import (
    build_share_url,
    get_active_shares,
    open_share,
    revoke_share,
    share_run,
)
from runs.views.run_actions.document import build_document_page
from tools.secrets import SecretUnreadable, seal, unseal

NEW_SHARE_KEY = "just-shared"
"""Session key of a new link, sealed, until its page has shown it."""
PRIVATE_HEADERS = {
    "X-Robots-Tag": "noindex, nofollow, noarchive",
    "Referrer-Policy": "no-referrer",
}
BARE_CONTEXT: dict[str, Any] = {"frame": None, "csrf_token": "", "messages": []}
"""Of pages for anyone: without menus, and without anything of a session."""
MAX_RENDERED = 4
"""Shared pages that a web server renders at the same time: anyone may ask for them."""
BUSY_SECONDS = "2"

_places = BoundedSemaphore(MAX_RENDERED)


@require_http_methods(["GET", "POST"])
@never_cache
def run_share(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the links of the run; POST creates one, which is shown only once."""
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    form = ShareLinkForm(request.POST or None)
    if form.is_valid():
        try:
            hours = int(form.cleaned_data["hours"])
            token = share_run(run, by=request.user, hours=hours)
        except CannotShare as refused:
            form.add_error(None, str(refused))
        else:
            request.session[NEW_SHARE_KEY] = seal(f"{run.pk} {token}")
            return redirect("run-share", pk)
    context = {
        "run": run,
        "form": form,
        "shares": get_active_shares(run),
        "made": pop_new_share_url(request, run),
    }
    return render(request, "runs/share.html", context)


def pop_new_share_url(request: HtmxRequest, run: Run) -> str:
    """Return the URL of the link just created for this run, once."""
    sealed = request.session.get(NEW_SHARE_KEY)
    if sealed is None:
        return ""
    del request.session[NEW_SHARE_KEY]
    try:
        pk, _, token = unseal(sealed).partition(" ")
    except SecretUnreadable:
        return ""
    return build_share_url(token) if pk == str(run.pk) else ""


@require_POST
def run_share_revoke(request: HtmxRequest, pk: int, share_pk: int) -> HttpResponse:
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    link = get_object_or_404(RunShare, pk=share_pk, run=run)
    revoke_share(link, by=request.user)
    messages.success(request, _("Link revoked."))
    return redirect("run-share", pk)


@login_not_required
@require_GET
@never_cache
def run_shared(request: HttpRequest, token: str) -> HttpResponse:
    """Show the run of a link, read-only, to anyone who has the link.

    Signed-in users see the page without their own menus.
    """
    if _places.acquire(blocking=False):
        try:
            page = render_shared_run(request, token)
        finally:
            _places.release()
    else:
        page = render(request, "runs/shared_busy.html", BARE_CONTEXT, status=503)
        page["Retry-After"] = page["Refresh"] = BUSY_SECONDS
    for name, value in PRIVATE_HEADERS.items():
        page[name] = value
    return page


def render_shared_run(request: HttpRequest, token: str) -> HttpResponse:
    run = open_share(token)
    if run is None:
        return render(request, "runs/shared_over.html", BARE_CONTEXT, status=404)
    context = BARE_CONTEXT | build_document_page(run, request.GET)
    return render(request, "runs/shared.html", context)
