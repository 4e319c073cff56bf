"""The entry to the API: authentication, methods, and problem+json for every error."""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.views.decorators.csrf import csrf_exempt
from pydantic import BaseModel
from pydantic_core import to_json
from structlog.contextvars import bind_contextvars

from runs.api.bodies import parse_body
from runs.api.problems import (
    ApiProblem,
    database_problem,
    describe_body_limit,
    field_problem,
    unauthorized_problem,
)
from runs.api.queries import parse_query
from runs.api.replay import replay_or_create
from runs.api.route import ApiRequest, Route
from runs.models import ApiToken
from runs.services.accounts.tokens import find_token_problem, find_valid_token
from runs.services.errors import TooManyRuns
from tools.audit.actor import Way, act_as

logger = logging.getLogger(__name__)

SAFE_METHODS = ("GET", "HEAD")

TOKEN_PROBLEMS = {
    "expired": ("expired_token", "The API token has expired. Create a new one."),
    "revoked": ("revoked_token", "The API token was revoked. Create a new one."),
    "unknown": ("invalid_token", "The API token is invalid."),
}


def api_view(routes: Iterable[Route]) -> Callable[..., HttpResponse]:
    """Return the view of one URL from the routes of its path.

    A session is accepted only for reading, as the API has no CSRF protection.
    """
    by_method = {route.method: route for route in routes}
    allowed = sorted([*by_method, *(["HEAD"] if "GET" in by_method else [])])

    @csrf_exempt
    @login_not_required
    def view(request: ApiRequest, **captured: str) -> HttpResponse:
        try:
            method = "GET" if request.method == "HEAD" else request.method
            route = by_method.get(method or "")  # type: ignore[call-overload]  # any text
            if route is None:
                raise method_not_allowed(request, allowed)
            return answer_route(request, route, captured)
        except ApiProblem as problem:
            return problem.response()
        except TooManyRuns as error:
            response = field_problem("runs", str(error), 429).response()
            response["Retry-After"] = str(error.retry_seconds)
            return response
        except RequestDataTooBig:
            return field_problem("body", describe_body_limit(), 413).response()
        except DatabaseError:
            logger.exception("API: the database did not answer")
            return database_problem().response()
        except Exception:  # top-level handler: every error gets the same shape
            logger.exception("API: %s %s failed", request.method, request.path)
            return field_problem("server", "Internal server error.", 500).response()

    view.routes = by_method  # type: ignore[attr-defined]  # for replays, and the tests
    return view


def answer_route(
    request: ApiRequest, route: Route, captured: dict[str, str]
) -> HttpResponse:
    """Authenticate the request, parse it, and call the endpoint."""
    user = authenticate_request(request, scope=route.needed_scope)
    bind_contextvars(user=user.pk)
    # Errors of the API are in English, whatever the client's language.
    with translation.override("en"), act_as(user, way=Way.API):
        arguments: dict[str, Any] = dict(captured)
        if route.query is not None:
            arguments["query"] = parse_query(request.GET, route.query)
        elif request.GET:
            raise unknown_parameters(request)
        if route.body is not None:
            arguments["body"] = parse_route_body(request, route.body)
            if not route.cleans_text:
                refuse_null_characters(arguments["body"])

        def call() -> HttpResponse:
            return route.do(request, user, **arguments)

        if route.keeps_own_keys or not route.is_idempotent:
            return call()
        return replay_or_create(request, user, call)


def unknown_parameters(request: HttpRequest) -> ApiProblem:
    return field_problem(sorted(request.GET)[0][:80], "Unknown field.")


def parse_route_body(request: HttpRequest, kind: type[BaseModel]) -> BaseModel:
    """Return the body; an empty one counts as an empty object, if that is one."""
    needed = any(field.is_required() for field in kind.model_fields.values())
    return parse_body(request.body or (b"" if needed else b"{}"), kind)


def refuse_null_characters(body: BaseModel) -> None:
    for path in find_null_characters(body.model_dump(exclude_unset=True)):
        raise field_problem(path, "The value contains a null character.")


def find_null_characters(value: Any, path: str = "") -> Iterator[str]:
    """Yield where a body has a character that no database stores."""
    match value:
        case str() if "\0" in value:
            yield path
        case dict():
            for name, one in value.items():
                here = f"{path}.{name}".lstrip(".")
                yield from find_null_characters(str(name), here.replace("\0", "�"))
                yield from find_null_characters(one, here.replace("\0", "�"))
        case list() | tuple():
            for place, one in enumerate(value):
                yield from find_null_characters(one, f"{path}.{place}")


def method_not_allowed(request: HttpRequest, allowed: list[str]) -> ApiProblem:
    problem = field_problem(
        "method",
        f"{request.method} is not allowed. Allowed methods: {', '.join(allowed)}.",
        405,
    )
    problem.headers["Allow"] = ", ".join(allowed)
    return problem


def authenticate_request(request: ApiRequest, *, scope: str) -> User:
    """Return the user, by token or, for reading, by session; raise a 401 or 403."""
    request.api_token = None
    header = request.headers.get("Authorization", "")
    if header:
        scheme, _, secret = header.partition(" ")
        token = find_valid_token(secret.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            refuse_token(secret.strip())
        require_scope(token, scope)
        request.api_token = token
        return token.user
    if request.method in SAFE_METHODS and isinstance(request.user, User):
        return request.user
    raise unauthorized_problem(
        "The header `Authorization: Bearer TOKEN` is missing.", code="missing_token"
    )


def refuse_token(secret: str) -> NoReturn:
    code, message = TOKEN_PROBLEMS[find_token_problem(secret)]
    raise unauthorized_problem(message, code=code)


def require_scope(token: ApiToken, scope: str) -> None:
    if not token.allows(scope):
        raise field_problem(
            "Authorization",
            f"The API token does not have the scope `{scope}`.",
            403,
            code="missing_scope",
        )


def json_response(shape: Any, status: int = 200, **headers: str) -> HttpResponse:
    return HttpResponse(
        to_json(shape, inf_nan_mode="null"),
        status=status,
        content_type="application/json",
        headers={"Cache-Control": "no-store", **headers},
    )


def no_content() -> HttpResponse:
    return HttpResponse(status=204, headers={"Cache-Control": "no-store"})


@csrf_exempt
@login_not_required
def url_not_found(request: HttpRequest, rest: str = "") -> HttpResponse:
    """Answer every other address below the API."""
    return field_problem("path", f"{request.path} not found.", 404).response()
