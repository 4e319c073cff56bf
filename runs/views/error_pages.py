"""Pages for what went wrong: in words, with a way on."""

import logging
import sys
from collections.abc import Callable

from django.db import InterfaceError, OperationalError, connection
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
)
from django.shortcuts import render
from django.template.loader import render_to_string

logger = logging.getLogger(__name__)


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Say that the form was too old, and that nothing was done."""
    return render(request, "errors/csrf.html", {"reason": reason}, status=403)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Say that the request could not be read, without reading more of it."""
    return HttpResponse(render_to_string("400.html"), status=400)


class ButtonPage:
    """Show a page in place of the blank 405 where a button's address is opened."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        is_blank = isinstance(response, HttpResponseNotAllowed) and not response.content
        if is_blank and request.method == "GET":
            page = render(request, "errors/button.html", status=405)
            page.headers["Allow"] = response.headers["Allow"]
            return page
        return response


def server_error(request: HttpRequest) -> HttpResponse:
    """Say that it is our mistake, or that the database is away.

    A middleware would not do: Django turns what inner ones raise into a 500 first.
    """
    error = sys.exc_info()[1]
    if isinstance(error, OperationalError | InterfaceError):
        return database_away(error)
    return HttpResponse(render_to_string("500.html"), status=500)


def database_away(error: Exception) -> HttpResponse:
    """Return a page that needs no database and tries again by itself."""
    logger.error("The database is away: %s", error)
    connection.close_if_unusable_or_obsolete()
    # Without the request, so that nothing on the page asks the database.
    response = HttpResponse(render_to_string("errors/database_away.html"), status=503)
    response.headers["Retry-After"] = "3"
    response.headers["Refresh"] = "3"
    response.headers["Cache-Control"] = "no-store"
    return response
