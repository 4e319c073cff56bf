"""Tokens for the API: made once, shown once, stored as a hash."""

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from runs.models import ApiToken
from runs.services.prepared import Prepared
from tools.audit.write import write_entry

PREFIX = "as_"
USE_NOTED_EVERY = timedelta(minutes=1)

BY_DIGEST = Prepared(
    lambda digest: ApiToken.objects.select_related("user").filter(
        digest=digest, revoked_at=None, user__is_active=True
    ),
    str,
)


def create_token(user: User, name: str = "") -> str:
    """Return a new token of 256 random bits for `user`; it cannot be read again."""
    token = PREFIX + secrets.token_urlsafe(32)
    ApiToken.objects.create(user=user, name=name, digest=digest_of(token))
    return token


def user_of_token(token: str) -> User | None:
    """Return whose token it is; None where it is unknown or revoked.

    Its use is noted at most once a minute, so that polling writes nothing.
    """
    found = BY_DIGEST.first(digest_of(token))
    if found is None:
        return None
    used = found.last_used_at
    if used is None or timezone.now() - used > USE_NOTED_EVERY:
        # Conditional, so that of many requests at once one writes.
        ApiToken.objects.filter(pk=found.pk, last_used_at=used).update(
            last_used_at=Now()
        )
    return found.user


def revoke_token(token: ApiToken) -> bool:
    """End `token` for good; return False where that was done before."""
    rows = ApiToken.objects.filter(pk=token.pk, revoked_at=None)
    with transaction.atomic():
        revoked = bool(rows.update(revoked_at=Now()))
        if revoked:
            write_entry("revoked", "API token", token)
    return revoked


def digest_of(token: str) -> str:
    """Return the hash under which a token or link is stored."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
