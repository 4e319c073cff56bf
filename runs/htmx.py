"""Pages and parts: which one a request wants, and the typed request."""

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.middleware import HtmxDetails

VARY = ("HX-Request", "HX-Target", "HX-History-Restore-Request")


class VaryOnHtmx:
    """Keep browsers from showing a stored part as the page of the same URL."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.headers.get("HX-Request") or is_page(response):
            patch_vary_headers(response, VARY)
        return response


def is_page(response: HttpResponse) -> bool:
    return response.headers.get("Content-Type", "").startswith("text/html")


class HtmxRequest(HttpRequest):
    """A request of a signed-in user, with htmx's headers."""

    user: User
    htmx: HtmxDetails


def get_return_url(request: HttpRequest, default: str) -> str:
    """Return the posted `here`, the page to return to, if it is one of this site."""
    here = request.POST.get("here", "")
    is_ours = here.startswith("/") and url_has_allowed_host_and_scheme(here, None)
    return here if is_ours else default


def wants_part(request: HttpRequest) -> bool:
    """Whether htmx replaces a part; boosted and history requests want a page."""
    htmx: HtmxDetails = request.htmx  # type: ignore[attr-defined]  # by the middleware
    return bool(htmx) and not htmx.boosted and not htmx.history_restore_request


def render_page_or_part(
    request: HttpRequest, page: str, part: str, context: Mapping[str, Any]
) -> HttpResponse:
    """Render the part for htmx, and otherwise the page that includes it."""
    return render(request, part if wants_part(request) else page, dict(context))
