"""Who may watch a run: the user of a session or token who can see the run."""

from http.cookies import CookieError, SimpleCookie
from importlib import import_module
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest
from django.utils import translation

from runs.language import SESSION_KEY
from runs.models import Run
from runs.services.accounts.tokens import find_valid_token


class Person(NamedTuple):
    """The viewer of a page: what its header and language depend on."""

    pk: int
    is_superuser: bool = False
    groups: frozenset[int] = frozenset()
    language: str = settings.LANGUAGE_CODE


class Credentials(NamedTuple):
    """What a request authenticates with, and its browser's languages."""

    token: str = ""
    session: str = ""
    accept_language: str = ""


def get_request_credentials(request: HttpRequest) -> Credentials:
    """Return the token or session of a request that was let in."""
    token = request.headers.get("Authorization", "").partition(" ")[2].strip()
    if token:
        return Credentials(token=token)
    return Credentials(session=request.session.session_key or "")


def read_credentials(headers: dict[bytes, bytes]) -> Credentials:
    """Return what a page's request for a stream authenticates with."""
    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load(headers.get(b"cookie", b"").decode("latin-1"))
    except CookieError:
        return Credentials()
    morsel = cookies.get(settings.SESSION_COOKIE_NAME)
    return Credentials(
        session=morsel.value if morsel else "",
        accept_language=headers.get(b"accept-language", b"").decode("latin-1"),
    )


def authorize_viewer(key: Credentials, run_id: int | None) -> Person | None:
    """Return the bearer of `key` if it may watch the run.

    Without a run, only the bearer is checked.
    """
    user = user_of_credentials(key)
    if user is None or not user.is_active:
        return None
    groups: frozenset[int] = frozenset()
    if not user.is_superuser:
        groups = frozenset(user.groups.values_list("pk", flat=True))
    person = Person(user.pk, user.is_superuser, groups)
    if run_id is None or Run.objects.visible_to(user).filter(pk=run_id).exists():
        return person
    return None


def read_language(key: Credentials) -> str:
    """Return the language of the session, else of the browser, as pages do."""
    request: Any = _SessionRequest(key)
    language: str = request.session.get(SESSION_KEY) if key.session else ""
    return language or translation.get_language_from_request(request)


def user_of_credentials(key: Credentials) -> User | None:
    """Return the user; None without a valid token or session."""
    if key.token:
        token = find_valid_token(key.token)
        return token.user if token is not None and token.allows("read") else None
    if not key.session:
        return None
    user = get_user(_SessionRequest(key))  # type: ignore[arg-type]  # all it reads is the session
    return None if isinstance(user, AnonymousUser) else user


class _SessionRequest:
    """The parts of a request that Django reads the user and the language from."""

    def __init__(self, key: Credentials) -> None:
        engine: Any = import_module(settings.SESSION_ENGINE)
        self.session = engine.SessionStore(key.session)
        self.COOKIES: dict[str, str] = {}
        self.META = {"HTTP_ACCEPT_LANGUAGE": key.accept_language}
