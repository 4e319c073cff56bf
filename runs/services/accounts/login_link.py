"""Login links: they sign one user in, once, within 15 minutes."""

import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.db.models.functions import Now

from runs.models import LoginLink
from runs.services.api_token import digest_of

LIFETIME = timedelta(minutes=15)


def make_login_link(user: User) -> str:
    """Return the token of a new link for `user`; only its hash is stored."""
    LoginLink.objects.filter(expires_at__lt=Now()).delete()
    token = secrets.token_urlsafe(32)
    LoginLink.objects.create(
        user=user, digest=digest_of(token), expires_at=Now() + LIFETIME
    )
    return token


def is_usable(token: str) -> bool:
    """Return whether `use_login_link` would sign someone in; nothing is used up."""
    return open_links(token).exists()


def use_login_link(token: str) -> User | None:
    """Use the link up and return its user; None where it is used, old or unknown."""
    if not open_links(token).update(used_at=Now()):
        return None
    return LoginLink.objects.select_related("user").get(digest=digest_of(token)).user


def address_of_link(token: str) -> str:
    """Return the URL to open."""
    return f"{settings.PUBLIC_URL}/login/{token}/"


def open_links(token: str) -> QuerySet[LoginLink]:
    """Return the link of `token`, if it still opens the door."""
    return LoginLink.objects.filter(
        digest=digest_of(token),
        used_at=None,
        expires_at__gt=Now(),
        user__is_active=True,
    )
