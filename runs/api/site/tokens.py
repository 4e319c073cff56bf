"""Your API tokens in the API; a new one is shown once."""

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Literal

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.urls import reverse
from pydantic import Field

from runs.api.bodies import StrictBody
from runs.api.dispatch import json_response, no_content
from runs.api.problems import field_problem, not_found
from runs.api.queries import Page, PageQuery, paginate_by_id
from runs.api.route import ApiRequest, Route
from runs.api.shapes import Shape
from runs.models import ApiToken
from runs.serializers import Json, format_timestamp
from runs.services.accounts.tokens import (
    create_token,
    hash_token,
    list_own_tokens,
    revoke_token,
)
from runs.services.errors import TooManyTokens

ScopeName = Literal["read", "run", "approve", "build", "admin"]
MAX_DAYS = 3650


class TokenBody(StrictBody):
    """The body of `POST /api/v1/tokens`."""

    name: Annotated[str, Field(min_length=1, max_length=120)]
    """Where you use it."""
    scopes: Annotated[list[ScopeName], Field(min_length=1, max_length=5)]
    """At most those of the token that asks."""
    days: Annotated[int, Field(ge=1, le=MAX_DAYS)] | None = 90
    """When it expires; null for never."""


class TokenShape(Shape):
    """A token, without its secret."""

    id: int
    name: str
    scopes: list[ScopeName]
    created_at: str
    last_used_at: str | None
    expires_at: str | None
    is_expired: bool
    token: str = ""
    """The token itself, in the response that creates it."""


def token_json(token: ApiToken) -> Json:
    return {
        "id": token.pk,
        "name": token.name,
        "scopes": token.scopes.split(),
        "created_at": format_timestamp(token.created_at),
        "last_used_at": format_timestamp(token.last_used_at),
        "expires_at": format_timestamp(token.expires_at),
        "is_expired": token.is_expired,
    }


def list_tokens(request: ApiRequest, user: User, query: PageQuery) -> HttpResponse:
    """Your tokens that are not revoked, the newest first."""
    return json_response(paginate_by_id(list_own_tokens(user), query, token_json))


def read_token(request: ApiRequest, user: User, pk: str) -> HttpResponse:
    """One of your tokens, without its secret."""
    return json_response(token_json(get_own_token(user, pk)))


def create_api_token(request: ApiRequest, user: User, body: TokenBody) -> HttpResponse:
    """Create a token; only this response has it."""
    return issue_token(
        request, user, body=body, locate=lambda pk: reverse("api-token", args=[pk])
    )


def issue_token(
    request: ApiRequest, owner: User, *, body: TokenBody, locate: Callable[[int], str]
) -> HttpResponse:
    """Create a token and respond with it; `locate` returns its URL.

    Raise a 403 for scopes that the token of the request does not have, a 409 if
    `owner` has too many tokens.
    """
    require_own_scopes(request, body.scopes)
    try:
        secret = create_token(
            owner,
            body.name,
            scopes=list(dict.fromkeys(body.scopes)),
            lifetime=timedelta(days=body.days) if body.days else None,
        )
    except TooManyTokens as error:
        raise field_problem("tokens", str(error), 409) from None
    made = ApiToken.objects.get(digest=hash_token(secret))
    shape = {**token_json(made), "token": secret}
    return json_response(shape, 201, Location=locate(made.pk))


def require_own_scopes(request: ApiRequest, scopes: list[ScopeName]) -> None:
    """Raise a 403 for a scope that the token of the request does not have."""
    asking = request.api_token
    for scope in scopes:
        if asking is not None and not asking.allows(scope):
            message = f"Your token does not have the scope `{scope}` itself."
            raise field_problem("scopes", message, 403)


def revoke_api_token(request: ApiRequest, user: User, pk: str) -> HttpResponse:
    """Revoke one of your tokens; this may be the one that asks."""
    revoke_token(get_own_token(user, pk))
    return no_content()


def get_own_token(user: User, pk: str) -> ApiToken:
    found = list_own_tokens(user).filter(pk=int(pk)).first()
    if found is None:
        raise not_found("Token", pk)
    return found


ROUTES = [
    Route(
        "GET",
        "tokens",
        list_tokens,
        "List your tokens",
        Page[TokenShape],
        scope="admin",
        query=PageQuery,
    ),
    Route(
        "POST",
        "tokens",
        create_api_token,
        "Create a token",
        TokenShape,
        scope="admin",
        body=TokenBody,
        status=201,
        is_idempotent=True,
    ),
    Route("GET", "tokens/{id}", read_token, "Read a token", TokenShape, scope="admin"),
    Route(
        "DELETE",
        "tokens/{id}",
        revoke_api_token,
        "Revoke a token",
        scope="admin",
        status=204,
    ),
]
