"""API tokens: shown once at creation and stored as a hash."""

import hashlib
import secrets
from collections.abc import Iterable
from datetime import timedelta
from typing import Literal

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from runs.models import ApiToken
from runs.models.accounts import USUAL_SCOPES
from runs.services.errors import TooManyTokens
from runs.store.fast_select import select_row
from tools.audit.write import write_entry

TOKEN_PREFIX = "as_"  # noqa: S105  # how a token begins
MAX_TOKENS = 100
"""Valid tokens of one user."""
LAST_USED_INTERVAL = timedelta(minutes=1)
RENEWED_FOR = timedelta(days=90)


def create_token(
    user: User,
    name: str = "",
    *,
    scopes: Iterable[str] = tuple(USUAL_SCOPES.split()),
    lifetime: timedelta | None = None,
    oauth_code: str | None = None,
) -> str:
    """Return a new token of 256 random bits for `user`; it is never shown again.

    Raises `TooManyTokens`. The lock makes concurrent requests of one user take turns.
    """
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        if get_valid_tokens(user).count() >= MAX_TOKENS:
            raise TooManyTokens(MAX_TOKENS)
        ApiToken.objects.create(
            user=user,
            name=name,
            digest=hash_token(token),
            scopes=" ".join(scopes),
            expires_at=None if lifetime is None else timezone.now() + lifetime,
            oauth_code=oauth_code,
        )
    return token


def find_valid_token(token: str) -> ApiToken | None:
    """Return the row of a token with its user; None if it opens nothing.

    Its use is recorded at most once a minute, so that polling writes nothing.
    """
    found = select_row(ApiToken, ("user",), digest=hash_token(token))
    if found is None or found.revoked_at is not None or found.is_expired:
        return None
    if not found.user.is_active:
        return None
    used = found.last_used_at
    if used is None or timezone.now() - used > LAST_USED_INTERVAL:
        # Conditional, so that of many requests at once one writes.
        ApiToken.objects.filter(pk=found.pk, last_used_at=used).update(
            last_used_at=Now()
        )
    return found


TokenProblem = Literal["expired", "revoked", "unknown"]


def find_token_problem(token: str) -> TokenProblem:
    """Return why `find_valid_token` found none; its holder may know."""
    found = select_row(ApiToken, ("user",), digest=hash_token(token))
    if found is None or not found.user.is_active:
        return "unknown"
    if found.revoked_at is not None:
        return "revoked"
    return "expired" if found.is_expired else "unknown"


def get_valid_tokens(user: User) -> QuerySet[ApiToken]:
    expired = Q(expires_at__lte=Now())
    return ApiToken.objects.filter(user=user, revoked_at=None).exclude(expired)


def list_own_tokens(user: User) -> QuerySet[ApiToken]:
    """Return the tokens that the user has not revoked, newest first."""
    return ApiToken.objects.filter(user=user, revoked_at=None).order_by("-pk")


def renew_token(token: ApiToken) -> bool:
    """Let a valid token that expires be valid for 90 days from now; False if it is not.

    Tokens that programs got by signing people in are renewed by signing in again.
    """
    rows = get_valid_tokens(token.user).filter(
        pk=token.pk, expires_at__isnull=False, oauth_code=None
    )
    until = timezone.now() + RENEWED_FOR
    with transaction.atomic():
        renewed = bool(rows.filter(expires_at__lt=until).update(expires_at=until))
        if renewed:
            write_entry("renewed", "API token", token)
    return renewed


def revoke_all_tokens(user: User) -> None:
    for token in get_valid_tokens(user):
        revoke_token(token)


def revoke_token(token: ApiToken) -> bool:
    """Revoke `token`; False if it was revoked before."""
    rows = ApiToken.objects.filter(pk=token.pk, revoked_at=None)
    with transaction.atomic():
        revoked = bool(rows.update(revoked_at=Now()))
        if revoked:
            write_entry("revoked", "API token", token)
    return revoked


def hash_token(token: str) -> str:
    """Return the SHA-256 under which a token or link is stored."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
