"""Authorization codes: signed, valid for a minute, good for one token.

AccessRequest           what a client asks a person for
issue_code()            a person's consent -> code
redeem_code()           code and verifier -> token; raises OAuthError
"""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.core import signing
from django.db import IntegrityError, transaction

from runs.models import ApiToken
from runs.oauth.clients import OAuthClient
from runs.oauth.errors import OAuthError
from runs.services.accounts.tokens import create_token, hash_token, revoke_token
from runs.services.errors import TooManyTokens
from tools.audit.actor import Way, act_as

SALT = "runs.oauth.code"
LIFETIME = timedelta(minutes=1)
MAX_LENGTH = 4000
VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


class AccessRequest(NamedTuple):
    """What a client asks a person for."""

    client: OAuthClient
    redirect_uri: str
    challenge: str
    """SHA-256 of the client's secret for this request, in base64url (PKCE)."""
    scopes: tuple[str, ...]


class Access(NamedTuple):
    """What a client gets."""

    token: str
    scopes: str
    lifetime: timedelta


def issue_code(request: AccessRequest, user: User, *, days: int) -> str:
    """Return the code by which the client of `request` gets a token of `user`."""
    agreed = {
        "id": secrets.token_hex(16),
        "client": hash_token(request.client.id),
        "name": request.client.name,
        "user": user.pk,
        "session": hash_token(user.get_session_auth_hash()),
        "to": request.redirect_uri,
        "challenge": request.challenge,
        "scopes": " ".join(request.scopes),
        "days": days,
    }
    return signing.dumps(agreed, salt=SALT, compress=True)


def redeem_code(
    code: str, *, client: OAuthClient, redirect_uri: str | None, verifier: str
) -> Access:
    """Return a new token; the second use of a code revokes the token of the first.

    Raises `OAuthError`.
    """
    agreed = read_code(code)
    if agreed["client"] != hash_token(client.id):
        raise refuse_grant("code: issued to another client.")
    if redirect_uri not in (None, agreed["to"]):
        raise refuse_grant("redirect_uri: not the one of the authorization request.")
    if not VERIFIER.fullmatch(verifier) or not hmac.compare_digest(
        compute_challenge(verifier), agreed["challenge"]
    ):
        raise refuse_grant("code_verifier: does not match the code_challenge.")
    user = User.objects.filter(pk=agreed["user"], is_active=True).first()
    if user is None or (hash_token(user.get_session_auth_hash()) != agreed["session"]):
        raise refuse_grant("code: the account was disabled or has a new password.")
    with act_as(user, way=Way.API):
        return issue_access_token(user, agreed)


def read_code(code: str) -> dict[str, Any]:
    """Return what a person agreed to within the last minute; raises `OAuthError`."""
    try:
        if len(code) > MAX_LENGTH:
            raise signing.BadSignature
        agreed: dict[str, Any] = signing.loads(code, salt=SALT, max_age=LIFETIME)
    except signing.SignatureExpired:
        raise refuse_grant("code: expired. Start again.") from None
    except (signing.BadSignature, UnicodeEncodeError):
        raise refuse_grant("code: invalid. Start again.") from None
    return agreed


def issue_access_token(user: User, agreed: Mapping[str, Any]) -> Access:
    lifetime = timedelta(days=agreed["days"])
    try:
        with transaction.atomic():
            token = create_token(
                user,
                agreed["name"],
                scopes=agreed["scopes"].split(),
                lifetime=lifetime,
                oauth_code=agreed["id"],
            )
    except IntegrityError:
        revoke_tokens_of(agreed["id"])
        raise refuse_grant("code: used before. Its token was revoked.") from None
    except TooManyTokens as error:
        revoke_tokens_of(agreed["id"])
        raise refuse_grant(str(error)) from None
    return Access(token, agreed["scopes"], lifetime)


def revoke_tokens_of(code_id: str) -> None:
    for issued in ApiToken.objects.filter(oauth_code=code_id):
        revoke_token(issued)


def compute_challenge(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def refuse_grant(description: str) -> OAuthError:
    return OAuthError("invalid_grant", description)
