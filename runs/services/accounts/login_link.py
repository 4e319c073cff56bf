"""Login links: each signs one user in, once, within 15 minutes."""

import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from runs.models import LoginLink
from runs.services.accounts.tokens import hash_token
from runs.services.errors import RunsError
from tools.accounts.service_account import is_service_account

LIFETIME = timedelta(minutes=15)


class CannotSignIn(RunsError):
    """A service account gets no login link."""

    def __init__(self, user: User) -> None:
        super().__init__(
            _("%(user)s is a service account, which cannot sign in. Create a token.")
            % {"user": user.get_username()}
        )


def create_login_link(user: User) -> str:
    """Return the token of a new link for `user`; earlier ones stop working.

    Raises `CannotSignIn`.
    """
    if is_service_account(user):
        raise CannotSignIn(user)
    LoginLink.objects.filter(Q(expires_at__lt=Now()) | Q(user=user)).delete()
    token = secrets.token_urlsafe(32)
    LoginLink.objects.create(
        user=user, digest=hash_token(token), expires_at=Now() + LIFETIME
    )
    return token


def is_valid_login_link(token: str) -> bool:
    """Whether `use_login_link` would sign a user in; it stays unused."""
    return find_open_login_links(token).exists()


def use_login_link(token: str) -> User | None:
    """Use the link and return its user; None if it is used, expired or unknown."""
    if not find_open_login_links(token).update(used_at=Now()):
        return None
    return LoginLink.objects.select_related("user").get(digest=hash_token(token)).user


def build_login_url(token: str) -> str:
    return f"{settings.PUBLIC_URL}/login/{token}/"


def find_open_login_links(token: str) -> QuerySet[LoginLink]:
    """Return the link of `token` if it is still valid."""
    return LoginLink.objects.filter(
        digest=hash_token(token),
        used_at=None,
        expires_at__gt=Now(),
        user__is_active=True,
        user__service_account=None,
    )
