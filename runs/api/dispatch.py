"""The way into the API: who asks, with which method; every refusal is problem+json."""

import logging
from collections.abc import Callable
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from pydantic_core import to_json

from runs.api.problems import Problem, refused, unauthorized
from runs.services.api_token import user_of_token
from tools.audit.actor import Way, acting

logger = logging.getLogger(__name__)

Endpoint = Callable[..., HttpResponse]

SAFE = ("GET", "HEAD")


def door(**endpoints: Endpoint) -> Endpoint:
    """Return the view of one URL: `door(GET=show_run)`.

    Endpoints take the request, the user and what the URL says. Pages may ask with
    their session, but only to read: without a token there is no protection against
    forged requests here.
    """
    if "GET" in endpoints:
        endpoints["HEAD"] = endpoints["GET"]

    @csrf_exempt
    @login_not_required
    def view(request: HttpRequest, **captured: Any) -> HttpResponse:
        try:
            endpoint = endpoints.get(request.method or "")
            if endpoint is None:
                raise not_that_way(request, sorted(endpoints))
            user = user_of(request)
            with acting(user, way=Way.API):
                return endpoint(request, user, **captured)
        except Problem as problem:
            return problem.response()
        except RequestDataTooBig:
            return refused("body", "The body is too long.", 413).response()
        except DatabaseError:
            logger.exception("API: the database did not answer")
            return refused("server", "The database is away. Try again.", 503).response()
        except Exception:  # a border: whatever it was, the answer has one shape
            logger.exception("API: %s %s failed", request.method, request.path)
            return refused("server", "Something went wrong here.", 500).response()

    return view


def not_that_way(request: HttpRequest, allowed: list[str]) -> Problem:
    """Return the problem of a method this URL does not take."""
    problem = refused(
        "method", f"{request.method} is not possible here: {', '.join(allowed)}.", 405
    )
    problem.headers["Allow"] = ", ".join(allowed)
    return problem


def user_of(request: HttpRequest) -> User:
    """Return who asks, by token or, to read, by session; raise a 401."""
    header = request.headers.get("Authorization", "")
    if header:
        scheme, _, token = header.partition(" ")
        user = user_of_token(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise unauthorized("This token is not valid.")
        return user
    if request.method in SAFE and isinstance(request.user, User):
        return request.user
    raise unauthorized("The header `Authorization: Bearer TOKEN` is missing.")


def answer(shape: Any, status: int = 200, **headers: str) -> HttpResponse:
    """Return `shape` as JSON."""
    return HttpResponse(
        to_json(shape, inf_nan_mode="null"),
        status=status,
        content_type="application/json",
        headers={"Cache-Control": "no-store", **headers},
    )


@csrf_exempt
@login_not_required
def nothing_here(request: HttpRequest, rest: str = "") -> HttpResponse:
    """Answer every other address below the API."""
    return refused("path", f"There is nothing at {request.path}.", 404).response()
