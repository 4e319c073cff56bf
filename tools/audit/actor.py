"""Who is acting in this thread: a person at a page or the API, or the server itself."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from tools.audit.entry import AuditEntry

Way = AuditEntry.Way


@dataclass(frozen=True)
class Actor:
    """A person, and the way they came; none for commands and workers."""

    user: User | None = None
    way: str = Way.SERVER


_actor_getter: ContextVar[Callable[[], Actor] | None] = ContextVar(
    "audit_actor", default=None
)


def get_current_actor() -> Actor:
    who = _actor_getter.get()
    return Actor() if who is None else who()


@contextmanager
def act_as(user: User | None, *, way: str = Way.PAGE) -> Iterator[None]:
    """Let `user` answer for whatever is changed inside."""
    token = _actor_getter.set(lambda: Actor(user, way))
    try:
        yield
    finally:
        _actor_getter.reset(token)


class AuditActorMiddleware:
    """Middleware: who is signed in answers for what their request changes."""

    def __init__(self, answer: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.answer = answer

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Look at the session only when something is written."""
        token = _actor_getter.set(
            lambda: Actor(get_signed_in_user(request.user), Way.PAGE)
        )
        try:
            return self.answer(request)
        finally:
            _actor_getter.reset(token)


def get_signed_in_user(user: User | AnonymousUser) -> User | None:
    """Return the person, None for a stranger."""
    return user if isinstance(user, User) or user.is_authenticated else None
