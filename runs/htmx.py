"""Pages and parts: which of the two a request wants, and the typed request."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django_htmx.middleware import HtmxDetails


class HtmxRequest(HttpRequest):
    """A request of someone who is signed in, with what htmx says about it."""

    user: User
    htmx: HtmxDetails


def wants_part(request: HttpRequest) -> bool:
    """Whether the answer replaces a part; boosted and restored pages are whole."""
    htmx: HtmxDetails = request.htmx  # type: ignore[attr-defined]  # by the middleware
    return bool(htmx) and not htmx.boosted and not htmx.history_restore_request


def page_or_part(
    request: HttpRequest, page: str, part: str, context: Mapping[str, Any]
) -> HttpResponse:
    """Answer with the part to htmx, with the page that includes it to all others."""
    name = part if wants_part(request) else page
    response = render(request, name, dict(context))
    patch_vary_headers(response, ["HX-Request"])
    return response
