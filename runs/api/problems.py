"""Error responses of the API: problem+json (RFC 9457).

ApiProblem             a status, and one sentence for each field
"""

from collections.abc import Iterable
from http import HTTPStatus

from django.conf import settings
from django.forms import BaseForm
from django.http import HttpResponse
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import to_json

from runs.services.errors import FieldError
from tools.text.validation_message import strip_value_error

CODES = {
    400: "invalid_json",
    401: "invalid_token",
    403: "not_allowed",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    412: "changed",
    413: "too_large",
    422: "invalid",
    428: "precondition_required",
    429: "too_many_requests",
    500: "internal_error",
    503: "unavailable",
}
"""The `code` of a problem by its status, unless it has one of its own."""


class ProblemField(BaseModel):
    """What is wrong with one field."""

    model_config = ConfigDict(extra="forbid")

    field: str
    message: str


class Problem(BaseModel):
    """An error response (RFC 9457)."""

    model_config = ConfigDict(extra="forbid")

    type: str
    title: str
    status: int
    code: str
    """For programs: `not_found`, `invalid`, `missing_scope` and others."""
    detail: str
    """For people."""
    errors: list[ProblemField]


class ApiProblem(Exception):
    """The request is refused; raised anywhere in a view, answered by `api_view`."""

    def __init__(
        self,
        status: int,
        errors: Iterable[FieldError],
        *,
        code: str = "",
        headers: dict[str, str] | None = None,
    ) -> None:
        self.status = status
        self.code = code or CODES[status]
        self.errors = list(errors)
        self.headers = headers or {}
        super().__init__(_describe_errors(self.errors))

    def response(self) -> HttpResponse:
        shape = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "code": self.code,
            "detail": str(self),
            "errors": [error._asdict() for error in self.errors],
        }
        return HttpResponse(
            to_json(shape),
            status=self.status,
            content_type="application/problem+json",
            headers={"Cache-Control": "no-store", **self.headers},
        )


def _describe_errors(errors: list[FieldError]) -> str:
    """Return all messages; of several errors, each with its field."""
    if len(errors) == 1:
        return errors[0].message
    return " ".join(f"{error.field}: {error.message}" for error in errors)


def database_problem() -> ApiProblem:
    """Return the answer of a request that the database did not serve."""
    return field_problem("server", "Database unavailable. Try again later.", 503)


def field_problem(
    field: str, message: str, status: int = 422, *, code: str = ""
) -> ApiProblem:
    return ApiProblem(status, [FieldError(field, message)], code=code)


def form_problem(form: BaseForm) -> ApiProblem:
    """Return the first error of each field; `body` is the form as a whole."""
    return ApiProblem(
        422,
        [
            FieldError("body" if name == "__all__" else name, str(messages[0]))
            for name, messages in form.errors.items()
        ],
    )


def describe_body_limit() -> str:
    """Say how large the body of a request can be."""
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE / 1024 / 1024
    return f"The request body is larger than {limit:g} MB. Send less in one request."


def not_found(noun: str, key: object) -> ApiProblem:
    """Return the problem of a row that does not exist, or not for this user."""
    return field_problem("id", f"{noun} {key} not found.", 404)


def unauthorized_problem(message: str, *, code: str = "") -> ApiProblem:
    return ApiProblem(
        401,
        [FieldError("Authorization", message)],
        code=code,
        headers={"WWW-Authenticate": 'Bearer realm="agentsite"'},
    )


def run_not_found(pk: int) -> ApiProblem:
    """Return the problem of a run that does not exist, or not for this user."""
    return field_problem("id", f"Run {pk} not found.", 404)


def validation_problem(error: ValidationError) -> ApiProblem:
    """Return the problem of a body: 400 if it is not JSON, else 422 by field."""
    problems = error.errors(include_url=False, include_context=False)
    if problems[0]["type"] == "json_invalid":
        why = problems[0]["msg"].removeprefix("Invalid JSON: ")
        return field_problem("body", f"The request body is not valid JSON: {why}.", 400)
    return ApiProblem(
        422,
        [
            FieldError(
                ".".join(map(str, found["loc"])) or "body",
                format_validation_error(found["type"], found["msg"]),
            )
            for found in problems
        ],
    )


def format_validation_error(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return "Unknown field."
    if kind == "missing":
        return "This field is required."
    return strip_value_error(message).rstrip(".") + "."
