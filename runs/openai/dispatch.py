"""The entry to the OpenAI-compatible endpoints: bearer tokens, scopes, errors."""

import logging
from collections.abc import Callable
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.views.decorators.csrf import csrf_exempt
from structlog.contextvars import bind_contextvars

from runs.api.problems import ApiProblem, describe_body_limit
from runs.models import ApiToken
from runs.openai.errors import OpenAiError, too_many_requests
from runs.services.accounts.tokens import find_token_problem, find_valid_token
from runs.services.errors import (
    FieldError,
    InputsRefused,
    NotAllowed,
    SpecRefused,
    TooManyRuns,
)
from tools.audit.actor import Way, act_as

logger = logging.getLogger(__name__)

Endpoint = Callable[..., HttpResponse]


def openai_view(*, scopes: tuple[str, ...], **endpoints: Endpoint) -> Endpoint:
    """Return the view of one URL: `openai_view(scopes=("read",), GET=list_models)`.

    Endpoints take the request, the caller's token and the URL's arguments. Sessions
    are not accepted: other sites can send a browser here.
    """

    @csrf_exempt
    @login_not_required
    def view(request: HttpRequest, **captured: Any) -> HttpResponse:
        try:
            endpoint = endpoints.get(request.method or "")
            if endpoint is None:
                raise refuse_method(request, sorted(endpoints))
            token = authenticate_bearer(request, scopes)
            bind_contextvars(user=token.user_id)
            # Errors are in English, whatever the client's language.
            with translation.override("en"), act_as(token.user, way=Way.API):
                return endpoint(request, token, **captured)
        except REFUSALS as error:
            return convert_refusal(error).response()
        except DatabaseError:
            logger.exception("OpenAI endpoint: the database did not answer")
            message = "Database unavailable. Try again later."
            return OpenAiError(message, code="unavailable", status=503).response()
        except Exception:  # top-level handler: every error gets the same shape
            logger.exception("%s %s failed", request.method, request.path)
            message = "Internal server error."
            return OpenAiError(message, code="internal_error", status=500).response()

    return view


REFUSALS = (
    ApiProblem,
    InputsRefused,
    NotAllowed,
    OpenAiError,
    RequestDataTooBig,
    SpecRefused,
    TooManyRuns,
)


def convert_refusal(error: Exception) -> OpenAiError:
    """Return the error that reports one of `REFUSALS` to the client."""
    match error:
        case OpenAiError():
            return error
        case ApiProblem():
            return convert_field_errors(error.errors, str(error), status=error.status)
        case InputsRefused():
            return convert_field_errors(error.errors, str(error), prefix="metadata")
        case SpecRefused():
            return convert_field_errors(error.errors, str(error), prefix="model")
        case NotAllowed():
            return OpenAiError(str(error), code="not_allowed", status=403)
        case TooManyRuns():
            return too_many_requests(str(error), retry_seconds=error.retry_seconds)
        case _:
            return OpenAiError(
                describe_body_limit(), code="request_too_large", status=413
            )


def convert_field_errors(
    errors: list[FieldError], message: str, *, status: int = 400, prefix: str = ""
) -> OpenAiError:
    """Return one error that names the first field; OpenAI's have no list."""
    field = errors[0].field if errors else ""
    param = ".".join(filter(None, [prefix, field])) or None
    code = "invalid_value" if status in (400, 422) else "invalid_request"
    return OpenAiError(
        message, code=code, status=400 if status == 422 else status, param=param
    )


def refuse_method(request: HttpRequest, allowed: list[str]) -> OpenAiError:
    names = ", ".join(allowed)
    return OpenAiError(
        f"Not allowed to {request.method} {request.path}. Allowed methods: {names}.",
        code="method_not_allowed",
        status=405,
        headers={"Allow": names},
    )


TOKEN_PROBLEMS = {
    "expired": ("token_expired", "The API token has expired. Create a new one."),
    "revoked": ("token_revoked", "The API token was revoked. Create a new one."),
    "unknown": ("invalid_api_key", "Incorrect API token provided."),
}


def authenticate_bearer(request: HttpRequest, scopes: tuple[str, ...]) -> ApiToken:
    """Return the caller's token; raise a 401 or 403."""
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret:
        raise unauthorized(
            "missing_api_key",
            "The API token is missing. Send it as `Authorization: Bearer TOKEN`.",
        )
    token = find_valid_token(secret)
    if token is None:
        raise unauthorized(*TOKEN_PROBLEMS[find_token_problem(secret)])
    missing = [scope for scope in scopes if not token.allows(scope)]
    if missing:
        names = " and ".join(f"`{scope}`" for scope in missing)
        raise OpenAiError(
            f"The API token does not have the scope {names}.",
            code="missing_scope",
            status=403,
            headers={"WWW-Authenticate": 'Bearer error="insufficient_scope"'},
        )
    return token


def unauthorized(code: str, message: str) -> OpenAiError:
    challenge = {"WWW-Authenticate": 'Bearer realm="agentsite"'}
    return OpenAiError(message, code=code, status=401, headers=challenge)


@csrf_exempt
@login_not_required
def unknown_url(request: HttpRequest, rest: str = "") -> HttpResponse:
    """Answer every other address below `/v1/`."""
    return OpenAiError(
        f"Unknown request URL: {request.method} {request.path}.",
        code="unknown_url",
        status=404,
    ).response()
