"""Answers of the API that say what is wrong: problem+json (RFC 9457).

Problem                a refusal with a status and one sentence for each field
"""

from collections.abc import Iterable
from http import HTTPStatus

from django.http import HttpResponse
from pydantic import ValidationError
from pydantic_core import to_json

from runs.services.errors import FieldError


class Problem(Exception):
    """The request is refused; raised anywhere in a view, answered by the door."""

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
        super().__init__(" ".join(error.message for error in self.errors))

    def response(self) -> HttpResponse:
        """Return the answer to send."""
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


def refused(field: str, message: str, status: int = 422) -> Problem:
    """Return the problem of one field."""
    return Problem(status, [FieldError(field, message)])


def unauthorized(message: str) -> Problem:
    """Return the problem of a caller we do not know."""
    return Problem(
        401,
        [FieldError("Authorization", message)],
        headers={"WWW-Authenticate": 'Bearer realm="agentsite"'},
    )


def no_run(pk: int) -> Problem:
    """Return the problem of a run that is not there, or not for this caller."""
    return refused("id", f"There is no run {pk} that you may see.", 404)


def unreadable(error: ValidationError) -> Problem:
    """Return what is wrong with a body: 400 where it is no JSON, 422 by field."""
    problems = error.errors(include_url=False, include_context=False)
    if problems[0]["type"] == "json_invalid":
        why = problems[0]["msg"].removeprefix("Invalid JSON: ")
        return refused("body", f"The body cannot be read as JSON: {why}.", 400)
    return Problem(
        422,
        [
            FieldError(
                ".".join(map(str, found["loc"])) or "body",
                sentence(found["type"], found["msg"]),
            )
            for found in problems
        ],
    )


def sentence(kind: str, message: str) -> str:
    """Return what a person should read about one field."""
    if kind == "extra_forbidden":
        return "This field is not known."
    if kind == "missing":
        return "This field is missing."
    return message.removeprefix("Value error, ").rstrip(".") + "."
