"""Who may watch a run: the session's user, or the token's, where the run is visible."""

from http.cookies import CookieError, SimpleCookie
from importlib import import_module
from typing import Any, Literal, NamedTuple

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser, User

from runs.models import Run
from runs.services.api_token import user_of_token

Answer = Literal["ok", "stranger", "hidden"]


class Person(NamedTuple):
    """Who looks at a page, as far as what needs them depends on it."""

    pk: int
    is_superuser: bool = False
    groups: frozenset[int] = frozenset()


class Door(NamedTuple):
    """Whether somebody may come in, and who it is."""

    answer: Answer
    person: Person | None = None


class Key(NamedTuple):
    """What a request shows to be let in."""

    token: str = ""
    session: str = ""


def key_of(headers: dict[bytes, bytes]) -> Key:
    """Return the key in a request's headers."""
    bearer = headers.get(b"authorization", b"").decode("latin-1")
    scheme, _, token = bearer.partition(" ")
    if scheme.lower() == "bearer":
        return Key(token=token.strip())
    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load(headers.get(b"cookie", b"").decode("latin-1"))
    except CookieError:
        return Key()
    morsel = cookies.get(settings.SESSION_COOKIE_NAME)
    return Key(session=morsel.value if morsel else "")


def ask_door(key: Key, run_id: int | None) -> Door:
    """Return whether the bearer of `key` may watch the run now; None is no run."""
    user = user_of(key)
    if user is None or not user.is_active:
        return Door("stranger")
    groups: frozenset[int] = frozenset()
    if not user.is_superuser:
        groups = frozenset(user.groups.values_list("pk", flat=True))
    person = Person(user.pk, user.is_superuser, groups)
    if run_id is None or Run.objects.visible_to(user).filter(pk=run_id).exists():
        return Door("ok", person)
    return Door("hidden", person)


def user_of(key: Key) -> User | None:
    """Return the user, None for a stranger."""
    if key.token:
        return user_of_token(key.token)
    if not key.session:
        return None
    user = get_user(_Request(key.session))  # type: ignore[arg-type]  # all it reads is the session
    return None if isinstance(user, AnonymousUser) else user


class _Request:
    """As much of a request as `get_user` looks at."""

    def __init__(self, session_key: str) -> None:
        engine: Any = import_module(settings.SESSION_ENGINE)
        self.session = engine.SessionStore(session_key)
