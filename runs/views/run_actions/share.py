"""Sharing one run by a link: making it, taking it back, and what it opens."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import (
    require_GET,
    require_http_methods,
    require_POST,
)

from runs.forms.share import ShareForm
from runs.htmx import HtmxRequest
from runs.models import Run, RunShare
from runs.services.errors import CannotShare
from runs.services.share_run import (
    address_of_share,
    live_shares,
    open_share,
    revoke_share,
    share_run,
)
from runs.views.run_document import WINDOW, document_of
from runs.whole_number import whole_number
from tools.secrets import SecretUnreadable, seal, unseal

JUST_MADE = "just-shared"
"""Where the session keeps a new link, sealed, until its page has shown it."""
PRIVATE = {
    "X-Robots-Tag": "noindex, nofollow, noarchive",
    "Referrer-Policy": "no-referrer",
}


@require_http_methods(["GET", "POST"])
@never_cache
def share(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the links that open the run; POST makes one, shown by the next page only."""
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    form = ShareForm(request.POST or None)
    if form.is_valid():
        try:
            hours = int(form.cleaned_data["hours"])
            token = share_run(run, by=request.user, hours=hours)
        except CannotShare as refused:
            form.add_error(None, str(refused))
        else:
            request.session[JUST_MADE] = seal(f"{run.pk} {token}")
            return redirect("run-share", pk)
    context = {
        "run": run,
        "form": form,
        "shares": live_shares(run),
        "made": new_address(request, run),
    }
    return render(request, "runs/share.html", context)


def new_address(request: HtmxRequest, run: Run) -> str:
    """Return the address of the link just made for this run, once."""
    sealed = request.session.get(JUST_MADE)
    if sealed is None:
        return ""
    del request.session[JUST_MADE]
    try:
        pk, _, token = unseal(sealed).partition(" ")
    except SecretUnreadable:
        return ""
    return address_of_share(token) if pk == str(run.pk) else ""


@require_POST
def revoke(request: HtmxRequest, pk: int, share_pk: int) -> HttpResponse:
    """End a link at once."""
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    link = get_object_or_404(RunShare, pk=share_pk, run=run)
    revoke_share(link, by=request.user)
    messages.success(request, "The link opens nothing any more.")
    return redirect("run-share", pk)


@login_not_required
@require_GET
@never_cache
def shared(request: HttpRequest, token: str) -> HttpResponse:
    """Show the run behind a link, read-only, to whoever has it.

    The page is nobody's: also who is signed in sees it without anything of their own.
    """
    run = open_share(token)
    context: dict[str, Any] = {"frame": None, "csrf_token": "", "messages": []}
    if run is None:
        page = render(request, "runs/shared_over.html", context, status=404)
    else:
        after = whole_number(request.GET.get("after", "")) or 0
        document = document_of(run, after=after)
        context |= {"document": document, "before": max(after - WINDOW, 0)}
        page = render(request, "runs/shared.html", context)
    for name, value in PRIVATE.items():
        page[name] = value
    return page
