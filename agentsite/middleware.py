"""Middleware: log fields, the Content Security Policy, and static files."""

import re
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
)
from django.utils.translation import gettext as _
from structlog.contextvars import bind_contextvars, clear_contextvars
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile

from tools.net.trace_context import HEADER, receive_traceparent

REQUEST_ID = re.compile(r"[\w.:-]{1,64}", re.ASCII)


class ContentSecurityPolicy:
    """Add the policy to every response: no inline script or style, no other origin."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response.headers.setdefault(
            "Content-Security-Policy", settings.CONTENT_SECURITY_POLICY
        )
        return response


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # it ships no types
    """WhiteNoise with whole responses: its file iterators are synchronous."""

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        answer = static_file.get_response(request.method, request.META)
        body = b""
        if answer.file is not None:
            with answer.file:
                body = answer.file.read()
        response = HttpResponse(body, status=int(answer.status))
        del response.headers["Content-Type"]
        for name, value in answer.headers:
            response.headers[name] = value
        return response


class TraceContext:
    """Let a run that the request starts belong to the trace of its caller."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with receive_traceparent(request.headers.get(HEADER, "")):
            return self.get_response(request)


class SignInRequired(LoginRequiredMiddleware):
    """Redirect to the sign-in, and from there to the page that sent a form.

    The address of the form itself answers no GET.
    """

    def handle_no_permission(
        self, request: HttpRequest, view_func: Callable[..., HttpResponseBase]
    ) -> HttpResponseRedirect:
        if request.method in ("GET", "HEAD"):
            return super().handle_no_permission(request, view_func)
        if "HX-Request" not in request.headers:
            messages.warning(
                request, _("You were signed out, so nothing was saved. Sign in again.")
            )
        return redirect_to_login(get_sending_page(request))


def get_sending_page(request: HttpRequest) -> str:
    """Return the path of the page of this site that sent a request, or "/"."""
    sent_by = request.headers.get("HX-Current-URL") or request.headers.get("Referer")
    try:
        page = urlsplit(sent_by or "")
    except ValueError:
        return "/"
    if page.netloc != request.get_host():
        return "/"
    return urlunsplit(("", "", page.path or "/", page.query, ""))


class RequestLogMiddleware:
    """Log the id of the request: that of a reverse proxy, or a new one.

    The response has it as the header `X-Request-ID`.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get("X-Request-ID", "")
        request_id = given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        clear_contextvars()
        bind_contextvars(request=request_id)
        try:
            response = self.get_response(request)
        finally:
            clear_contextvars()
        response.headers["X-Request-ID"] = request_id
        return response


class UserLogMiddleware:
    """Log the id of the user, if earlier middleware has read the session."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_: Any) -> None:
        user = getattr(request, "_cached_user", None)  # no query for a log line
        if user is not None and user.pk is not None:
            bind_contextvars(user=user.pk)
