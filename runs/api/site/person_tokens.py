"""API tokens of other accounts: those of service accounts can be created here."""

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from runs.api.dispatch import json_response, no_content
from runs.api.problems import field_problem
from runs.api.queries import Page, PageQuery, paginate_by_id
from runs.api.route import ApiRequest, Route
from runs.api.site.people import find_changeable_person
from runs.api.site.tokens import (
    TokenBody,
    TokenShape,
    get_own_token,
    issue_token,
    token_json,
)
from runs.services.accounts.tokens import list_own_tokens, revoke_token
from tools.accounts.service_account import is_service_account


def list_person_tokens(
    request: HttpRequest, user: User, pk: str, query: PageQuery
) -> HttpResponse:
    """The tokens of an account that are not revoked, the newest first."""
    tokens = list_own_tokens(find_changeable_person(user, pk))
    return json_response(paginate_by_id(tokens, query, token_json))


def read_person_token(
    request: HttpRequest, user: User, pk: str, number: str
) -> HttpResponse:
    """One token of an account, without its secret."""
    target = find_changeable_person(user, pk)
    return json_response(token_json(get_own_token(target, number)))


def create_person_token(
    request: ApiRequest, user: User, pk: str, body: TokenBody
) -> HttpResponse:
    """Create a token of a service account; only this response has it."""
    target = find_changeable_person(user, pk)
    if not is_service_account(target):
        message = "People create their own tokens."
        raise field_problem("id", message, 403)
    return issue_token(
        request,
        target,
        body=body,
        locate=lambda number: reverse("api-person-token", args=[target.pk, number]),
    )


def revoke_person_token(
    request: HttpRequest, user: User, pk: str, number: str
) -> HttpResponse:
    """Revoke a token of an account."""
    target = find_changeable_person(user, pk)
    revoke_token(get_own_token(target, number))
    return no_content()


ROUTES = [
    Route(
        "GET",
        "people/{id}/tokens",
        list_person_tokens,
        "List tokens of an account",
        Page[TokenShape],
        scope="admin",
        query=PageQuery,
    ),
    Route(
        "POST",
        "people/{id}/tokens",
        create_person_token,
        "Create a token of a service account",
        TokenShape,
        scope="admin",
        body=TokenBody,
        status=201,
        is_idempotent=True,
    ),
    Route(
        "GET",
        "people/{id}/tokens/{number}",
        read_person_token,
        "Read a token of an account",
        TokenShape,
        scope="admin",
    ),
    Route(
        "DELETE",
        "people/{id}/tokens/{number}",
        revoke_person_token,
        "Revoke a token of an account",
        scope="admin",
        status=204,
    ),
]
