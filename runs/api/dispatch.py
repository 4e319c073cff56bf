"""The entry to the API: authentication, methods, and problem+json for every error."""

import logging
from collections.abc import Callable
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.views.decorators.csrf import csrf_exempt
from pydantic_core import to_json
from structlog.contextvars import bind_contextvars

from runs.api.problems import ApiProblem, field_problem, unauthorized_problem
from runs.services.accounts.tokens import find_valid_token
from runs.services.errors import TooManyRuns
from tools.audit.actor import Way, act_as

logger = logging.getLogger(__name__)

Endpoint = Callable[..., HttpResponse]

SAFE_METHODS = ("GET", "HEAD")


def api_view(*, scope: str = "run", **endpoints: Endpoint) -> Endpoint:
    """Return the view of one URL: `api_view(GET=read_run)`.

    `scope` is what a token needs for methods that change something. Endpoints take the
    request, the user and the URL's arguments. A session is accepted only for reading,
    as the API has no CSRF protection.
    """
    if "GET" in endpoints:
        endpoints["HEAD"] = endpoints["GET"]

    @csrf_exempt
    @login_not_required
    def view(request: HttpRequest, **captured: Any) -> HttpResponse:
        try:
            endpoint = endpoints.get(request.method or "")
            if endpoint is None:
                raise method_not_allowed(request, sorted(endpoints))
            user = authenticate_request(request, scope=scope)
            bind_contextvars(user=user.pk)
            # Errors of the API are in English, whatever the client's language.
            with translation.override("en"), act_as(user, way=Way.API):
                return endpoint(request, user, **captured)
        except ApiProblem as problem:
            return problem.response()
        except TooManyRuns as error:
            response = field_problem("runs", str(error), 429).response()
            response["Retry-After"] = str(error.retry_seconds)
            return response
        except RequestDataTooBig:
            return field_problem(
                "body", "The request body is too large.", 413
            ).response()
        except DatabaseError:
            logger.exception("API: the database did not answer")
            return field_problem(
                "server", "Database unavailable. Try again later.", 503
            ).response()
        except Exception:  # top-level handler: every error gets the same shape
            logger.exception("API: %s %s failed", request.method, request.path)
            return field_problem("server", "Internal server error.", 500).response()

    return view


def method_not_allowed(request: HttpRequest, allowed: list[str]) -> ApiProblem:
    problem = field_problem(
        "method",
        f"{request.method} is not allowed. Allowed methods: {', '.join(allowed)}.",
        405,
    )
    problem.headers["Allow"] = ", ".join(allowed)
    return problem


def authenticate_request(request: HttpRequest, *, scope: str) -> User:
    """Return the user, by token or, for reading, by session; raise a 401 or 403."""
    header = request.headers.get("Authorization", "")
    if header:
        scheme, _, token = header.partition(" ")
        found = find_valid_token(token.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            raise unauthorized_problem("The API token is invalid.")
        needed = "read" if request.method in SAFE_METHODS else scope
        if not found.allows(needed):
            raise field_problem(
                "Authorization",
                f"The API token does not have the scope `{needed}`.",
                403,
            )
        return found.user
    if request.method in SAFE_METHODS and isinstance(request.user, User):
        return request.user
    raise unauthorized_problem("The header `Authorization: Bearer TOKEN` is missing.")


def json_response(shape: Any, status: int = 200, **headers: str) -> HttpResponse:
    return HttpResponse(
        to_json(shape, inf_nan_mode="null"),
        status=status,
        content_type="application/json",
        headers={"Cache-Control": "no-store", **headers},
    )


@csrf_exempt
@login_not_required
def url_not_found(request: HttpRequest, rest: str = "") -> HttpResponse:
    """Answer every other address below the API."""
    return field_problem("path", f"{request.path} not found.", 404).response()
