"""Idempotency keys of requests that create something other than a run."""

from collections.abc import Callable
from urllib.parse import urlsplit

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import resolve
from django.utils.crypto import salted_hmac

from runs.api.bodies import read_idempotency_key
from runs.api.problems import field_problem
from runs.api.queries import parse_query
from runs.api.route import Route
from runs.models import IdempotencyKey

KEY_SALT = "runs.api.replay"


def replay_or_create(
    request: HttpRequest, user: User, create: Callable[[], HttpResponse]
) -> HttpResponse:
    """Call `create` unless `user` has used the request's key; then read what it made.

    The unique row of the key, in the transaction that creates, decides between two
    concurrent requests. What a response shows once, such as a secret, is not stored,
    and so not repeated.
    """
    key = read_idempotency_key(request)
    if key is None:
        return create()
    digest = digest_http_request(request)
    if (location := find_created(user, key, digest)) is not None:
        return read_created(request, user, location)
    try:
        with transaction.atomic():
            response = create()
            IdempotencyKey.objects.create(
                user=user,
                key=key,
                body_digest=digest,
                location=response.get("Location", ""),
            )
    except IntegrityError:
        location = find_created(user, key, digest)
        if location is None:
            raise
        return read_created(request, user, location)
    return response


def digest_http_request(request: HttpRequest) -> str:
    """Return the same text for repetitions of a request only.

    It is keyed, as a body may have a password that could be guessed from its hash.
    """
    head = f"{request.method} {request.path.rstrip('/')}\n"
    digest = salted_hmac(KEY_SALT, head.encode() + request.body, algorithm="sha256")
    return digest.hexdigest()


def find_created(user: User, key: str, digest: str) -> str | None:
    """Return where the row is that a request with this key has created."""
    row = IdempotencyKey.objects.filter(user=user, key=key).first()
    if row is None:
        return None
    if row.body_digest != digest:
        raise field_problem(
            "Idempotency-Key",
            f"The key {key!r} was already used for another request. Use a new key.",
            409,
        )
    return row.location


def read_created(request: HttpRequest, user: User, location: str) -> HttpResponse:
    """Answer as the route that reads `location` does."""
    parts = urlsplit(location)
    found = resolve(parts.path)
    route: Route = found.func.routes["GET"]  # type: ignore[attr-defined]  # see api_view
    query = {}
    if route.query is not None:
        query["query"] = parse_query(QueryDict(parts.query), route.query)
    response: HttpResponse = route.do(request, user, **found.kwargs, **query)
    return response
