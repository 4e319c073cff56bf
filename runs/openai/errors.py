"""Errors in the shape and with the codes of OpenAI, which its clients raise by.

OpenAiError             a request is refused, or its run gives no answer
"""

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from pydantic_core import to_json

INVALID_REQUEST = "invalid_request_error"
SERVER_ERROR = "server_error"


class OpenAiError(Exception):
    """Raised anywhere in an endpoint, answered by `openai_view`."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int = 400,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.message, self.code, self.status, self.param = message, code, status, param
        self.headers = dict(headers or {})
        super().__init__(message)

    @property
    def body(self) -> dict[str, Any]:
        kind = INVALID_REQUEST if self.status < 500 else SERVER_ERROR
        if self.status == 429:
            kind = "requests"
        return {
            "error": {
                "message": self.message,
                "type": kind,
                "param": self.param,
                "code": self.code,
            }
        }

    def response(self) -> HttpResponse:
        return HttpResponse(
            to_json(self.body),
            status=self.status,
            content_type="application/json",
            headers={"Cache-Control": "no-store", **self.headers},
        )


def model_not_found(model: str) -> OpenAiError:
    """Return the error of an agent that does not exist, or not for this user."""
    return OpenAiError(
        f"The model {model[:100]!r} does not exist or you do not have access to it.",
        code="model_not_found",
        status=404,
        param="model",
    )


def unsupported_parameter(name: str, message: str) -> OpenAiError:
    return OpenAiError(message, code="unsupported_parameter", param=name)


def too_many_requests(message: str, *, retry_seconds: int) -> OpenAiError:
    return OpenAiError(
        message,
        code="rate_limit_exceeded",
        status=429,
        headers={"Retry-After": str(retry_seconds)},
    )
