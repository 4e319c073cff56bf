"""The language of a page: the user's setting, else the browser's."""

from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.utils.cache import patch_vary_headers

from runs.models import Preferences

SESSION_KEY = "language"


class UserLanguageMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        language = request.session.get(
            SESSION_KEY
        ) or translation.get_language_from_request(request)
        with translation.override(language):
            request.LANGUAGE_CODE = language
            response = self.get_response(request)
        response.headers.setdefault("Content-Language", language)
        patch_vary_headers(response, ["Accept-Language"])
        return response


def remember_language(request: HttpRequest, language: str) -> None:
    """Store the user's choice in the session, so that a request queries no table."""
    if language:
        request.session[SESSION_KEY] = language
    else:
        request.session.pop(SESSION_KEY, None)


def restore_language(request: HttpRequest, user: User, **kwargs: Any) -> None:
    preferences = Preferences.objects.filter(user=user).first()
    remember_language(request, preferences.language if preferences else "")


def connect_sign_in() -> None:
    user_logged_in.connect(restore_language, dispatch_uid="restore language")
