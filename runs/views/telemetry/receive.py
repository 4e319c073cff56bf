"""The address that other programs send their traces to, by OTLP over HTTP."""

import json
import logging

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.views.decorators.csrf import csrf_exempt
from structlog.contextvars import bind_contextvars

from runs.models import ApiToken
from runs.services.accounts.tokens import find_token_problem, find_valid_token
from runs.services.telemetry.importing.body import (
    MAX_BODY_BYTES,
    Format,
    get_format,
    parse_spans,
    refuse_size,
)
from runs.services.telemetry.importing.protobuf import (
    encode_status,
    encode_trace_response,
)
from runs.services.telemetry.importing.spans import TraceRefused
from runs.services.telemetry.importing.store import TraceImportResult, import_spans
from tools.audit.actor import Way, act_as

logger = logging.getLogger(__name__)

CONTENT_TYPES = {"protobuf": "application/x-protobuf", "json": "application/json"}
STATUS_CODES = {
    400: 3,  # INVALID_ARGUMENT
    401: 16,  # UNAUTHENTICATED
    403: 7,  # PERMISSION_DENIED
    404: 5,  # NOT_FOUND
    413: 8,  # RESOURCE_EXHAUSTED
    415: 3,
    429: 8,
    503: 14,  # UNAVAILABLE
}
"""Codes of `google.rpc.Status`."""
INTERNAL = 13
TOKEN_PROBLEMS = {
    "expired": "The API token has expired. Create a new one.",
    "revoked": "The API token was revoked. Create a new one.",
    "unknown": "The API token is invalid.",
}


@csrf_exempt
@login_not_required
def receive_traces(request: HttpRequest) -> HttpResponse:
    """Store the spans of a request; every answer has the format of the request."""
    if request.method != "POST":
        response = build_error(405, "Send a POST request.", "json")
        response["Allow"] = "POST"
        return response
    format = get_format(request.headers.get("Content-Type", ""))
    # Errors are in English, whatever the sender's language.
    with translation.override("en"):
        try:
            return build_answer(import_request(request, format), format or "json")
        except TraceRefused as refused:
            return build_refusal(refused, format or "json")
        except DatabaseError:
            logger.exception("traces: the database did not answer")
            message = "Database unavailable. Try again later."
            return build_error(503, message, format or "json")
        except Exception:  # top-level handler: every error gets the protocol's shape
            logger.exception("%s %s failed", request.method, request.path)
            return build_error(500, "Internal server error.", format or "json")


def import_request(request: HttpRequest, format: Format | None) -> TraceImportResult:
    token = authenticate_sender(request)
    bind_contextvars(user=token.user_id)
    if not settings.TRACE_IMPORT_DAILY_SPANS:
        raise TraceRefused(404, "The import of traces is disabled.")
    if format is None:
        raise TraceRefused(
            415,
            "The content type is unknown. Use application/x-protobuf or "
            "application/json.",
        )
    spans = parse_spans(
        read_trace_body(request),
        format=format,
        encoding=request.headers.get("Content-Encoding", ""),
    )
    with act_as(token.user, way=Way.API):
        return import_spans(spans, by=token.user)


def authenticate_sender(request: HttpRequest) -> ApiToken:
    """Return the sender's token; raise a `TraceRefused`."""
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret:
        raise TraceRefused(
            401,
            "The header `Authorization: Bearer TOKEN` with an API token is missing.",
        )
    token = find_valid_token(secret)
    if token is None:
        raise TraceRefused(401, TOKEN_PROBLEMS[find_token_problem(secret)])
    if not token.allows(ApiToken.Scope.RUN):
        raise TraceRefused(403, "The API token does not have the scope `run`.")
    return token


def read_trace_body(request: HttpRequest) -> bytes:
    """Return the body; one that is too large is not read into memory."""
    length = request.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > MAX_BODY_BYTES:
        raise refuse_size()
    body = bytes(request.read(MAX_BODY_BYTES + 1))
    if len(body) > MAX_BODY_BYTES:
        raise refuse_size()
    return body


def build_answer(result: TraceImportResult, format: Format) -> HttpResponse:
    """Return `ExportTraceServiceResponse`."""
    if format == "protobuf":
        content = encode_trace_response(result.rejected, result.message)
    else:
        partial = {
            "rejectedSpans": str(result.rejected),
            "errorMessage": result.message,
        }
        said = {"partialSuccess": partial} if result.rejected else {}
        content = json.dumps(said).encode()
    return build_trace_response(200, content, format)


def build_refusal(refused: TraceRefused, format: Format) -> HttpResponse:
    response = build_error(refused.status, refused.message, format)
    if refused.status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="agentsite"'
    if refused.retry_seconds is not None:
        response["Retry-After"] = str(refused.retry_seconds)
    return response


def build_error(status: int, message: str, format: Format) -> HttpResponse:
    """Return `google.rpc.Status`."""
    code = STATUS_CODES.get(status, INTERNAL)
    if format == "protobuf":
        return build_trace_response(status, encode_status(code, message), format)
    content = json.dumps({"code": code, "message": message}).encode()
    return build_trace_response(status, content, format)


def build_trace_response(status: int, content: bytes, format: Format) -> HttpResponse:
    return HttpResponse(
        content,
        status=status,
        content_type=CONTENT_TYPES[format],
        headers={"Cache-Control": "no-store"},
    )
