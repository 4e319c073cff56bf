"""Error responses of the API: problem+json (RFC 9457).

ApiProblem             a status, and one sentence for each field
"""

from collections.abc import Iterable
from http import HTTPStatus

from django.http import HttpResponse
from pydantic import ValidationError
from pydantic_core import to_json

from runs.services.errors import FieldError
from tools.text.validation_message import strip_value_error


class ApiProblem(Exception):
    """The request is refused; raised anywhere in a view, answered by `api_view`."""

    def __init__(
        self,
        status: int,
        errors: Iterable[FieldError],
        *,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.status = status
        self.errors = list(errors)
        self.headers = headers or {}
        super().__init__(_describe_errors(self.errors))

    def response(self) -> HttpResponse:
        shape = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
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


def field_problem(field: str, message: str, status: int = 422) -> ApiProblem:
    return ApiProblem(status, [FieldError(field, message)])


def unauthorized_problem(message: str) -> ApiProblem:
    return ApiProblem(
        401,
        [FieldError("Authorization", message)],
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
    """Return the message for one field."""
    if kind == "extra_forbidden":
        return "Unknown field."
    if kind == "missing":
        return "This field is required."
    return strip_value_error(message).rstrip(".") + "."
