"""Error pages."""

import logging
import sys
from collections.abc import Callable
from pathlib import PurePosixPath

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db import DataError, InterfaceError, OperationalError, connection
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
)
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import is_valid_path
from django.utils import translation

logger = logging.getLogger(__name__)


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    return render(request, "errors/csrf.html", {"reason": reason}, status=403)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer without reading more of the request."""
    context = {}
    if isinstance(exception, RequestDataTooBig):
        context["megabytes"] = settings.DATA_UPLOAD_MAX_MEMORY_SIZE / 1024 / 1024
    return HttpResponse(render_to_string("400.html", context), status=400)


class MethodNotAllowedPage:
    """Show a page instead of a blank 405 for the URL of a button."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        is_blank = isinstance(response, HttpResponseNotAllowed) and not response.content
        if is_blank and request.method == "GET":
            # Outside of the middleware that activates the language.
            language = getattr(request, "LANGUAGE_CODE", None)
            with translation.override(language or translation.get_language()):
                context = {"above": find_address_above(request.path_info)}
                page = render(request, "errors/button.html", context, status=405)
            page.headers["Allow"] = response.headers["Allow"]
            return page
        return response


def find_address_above(path: str) -> str:
    """Return the nearest address above `path` that the site has; "/" if none."""
    parents = PurePosixPath("/", path.strip("/")).parents
    return next(filter(is_valid_path, (f"{parent}/" for parent in parents)), "/")


class UnstorableValuePage:
    """Refuse a value in a request that the database cannot compare with any row.

    SQLite has no integers over 64 bits, and PostgreSQL no NUL in texts. Django's fields
    check neither where they select rows; no page has such a value.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(
        self, request: HttpRequest, exception: Exception
    ) -> HttpResponse | None:
        is_huge = isinstance(exception, OverflowError) and "SQLite" in str(exception)
        has_nul = isinstance(exception, DataError) and "NUL" in str(exception)
        return bad_request(request, exception) if is_huge or has_nul else None


def server_error(request: HttpRequest) -> HttpResponse:
    """Show the page for a server error, or for an unavailable database.

    Not a middleware: Django turns exceptions of inner ones into a 500 first.
    """
    error = sys.exc_info()[1]
    if isinstance(error, OperationalError | InterfaceError):
        return render_database_unavailable(error)
    return HttpResponse(render_to_string("500.html"), status=500)


def render_database_unavailable(error: Exception) -> HttpResponse:
    """Return a page that needs no database and reloads itself."""
    logger.error("The database is unavailable: %s", error)
    connection.close_if_unusable_or_obsolete()
    # Without the request, so that nothing on the page queries the database.
    response = HttpResponse(render_to_string("errors/database_away.html"), status=503)
    response.headers["Retry-After"] = "3"
    response.headers["Refresh"] = "3"
    response.headers["Cache-Control"] = "no-store"
    return response
