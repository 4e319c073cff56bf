"""What a server's refusal means: `ModelFailed` from status, headers and body."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from runs.llm.base import Endpoint
from runs.llm.errors import FailureCode, ModelFailed
from runs.llm.wire import BadJson, read_object

WORD_LENGTH = 300
"""Characters of a server's own explanation that are repeated."""

TOO_LONG = re.compile(
    r"context[ _](length|window|size)|maximum context|prompt is too long"
    r"|too many tokens|input is too long|reduce the length|input token count"
    r"|exceed\w* the (maximum|available) (number of tokens|context)"
    r"|token count .{0,40}exceeds",
    re.IGNORECASE,
)
FILTERED = re.compile(
    r"content[ _](filter|policy|management)|safety system|responsible ?ai",
    re.IGNORECASE,
)
NO_CREDIT = re.compile(
    r"insufficient_quota|insufficient[ _]balance|exceeded your current quota"
    r"|credit balance|billing",
    re.IGNORECASE,
)
WRONG_KEY = re.compile(
    r"api[ _]key (not valid|expired)|invalid[ _]api[ _]key", re.IGNORECASE
)
LATER = " Resume the run when it works again."
UNKNOWN_MODEL = re.compile(r"\bmodel\b|\bdeployment\b", re.IGNORECASE)

OVERLOADED = frozenset(("overloaded_error", "server_error", "api_error", "overloaded"))
LIMITED = frozenset(("rate_limit_error", "rate_limit_exceeded", "resource_exhausted"))
DENIED = frozenset(("authentication_error", "permission_error", "invalid_api_key"))


def refusal(
    endpoint: Endpoint,
    status: int,
    body: bytes,
    *,
    headers: Mapping[str, str],
    model: str,
    address: str,
) -> ModelFailed:
    """Return what an answer with an error `status` means."""
    try:
        # Gemini wraps its error object into a list.
        inner = body.strip().removeprefix(b"[").removesuffix(b"]")
        error = error_of(read_object(inner))
    except BadJson:
        error = None
    word = words_of(error, endpoint) if error is not None else ""
    failure = Refusal(endpoint, status, error or {}, word, model, address)
    failed = failure.meaning()
    if failed.may_retry:
        failed.retry_after = retry_after(headers)
    return failed


def stream_refusal(
    endpoint: Endpoint, error: dict[str, Any], *, model: str
) -> ModelFailed:
    """Return what an error sent in the middle of a stream means."""
    status = next(
        filter(None, map(_status, (error.get("code"), error.get("status")))), 0
    )
    word = words_of(error, endpoint)
    address = endpoint.base_url
    kinds = _kinds(error)
    if not status:
        status = 400
        if kinds & OVERLOADED or not kinds:
            status = 503
        elif kinds & LIMITED:
            status = 429
        elif kinds & DENIED:
            status = 401
    return Refusal(endpoint, status, error, word, model, address).meaning()


class Refusal:
    """One refusal, and the sentence it becomes."""

    def __init__(
        self,
        endpoint: Endpoint,
        status: int,
        error: dict[str, Any],
        word: str,
        model: str,
        address: str,
    ) -> None:
        self.endpoint = endpoint
        self.status = status
        self.error = error
        self.word = word
        self.model = model
        self.address = address
        self.text = " ".join((*_kinds(error), word))
        self.said = f" It says: {word}" if word else ""
        self.server = f"The server at {endpoint.base_url or address}"

    def meaning(self) -> ModelFailed:
        """Return the failure: by what the server says first, then by the status."""
        if self.status in (400, 403, 413, 422, 500) and TOO_LONG.search(self.text):
            return self._failed(
                "context_too_long",
                f"The request is longer than model {self.model!r} can take."
                " Shorten the question or give the agent a context limit.",
            )
        if self.status in (400, 403, 422, 451) and FILTERED.search(self.text):
            return self._failed(
                "content_filter",
                f"{self.server} refused the request because of its content. Change the"
                " question or the prompt.",
            )
        if self.status in (401, 403) or (
            self.status == 400 and WRONG_KEY.search(self.text)
        ):
            return self._failed(
                "auth",
                f"{self.server} did not accept the key."
                f" Check the key of provider {self.endpoint.slug!r}.",
            )
        if self.status in (402, 429) and (
            self.status == 402 or NO_CREDIT.search(self.text)
        ):
            return self._failed(
                "rate_limit",
                f"The account of provider {self.endpoint.slug!r} has no credit left."
                " Add credit there, then resume the run.",
            )
        return self._by_status()

    def _by_status(self) -> ModelFailed:
        status = self.status
        if status in (404, 405, 410):
            return self._not_found()
        if status == 413:
            return self._failed(
                "context_too_long",
                f"{self.server} finds the request too large. Shorten the question or"
                " give the agent a context limit.",
            )
        if status in (408, 504):
            told = f"{self.server} took too long (status {status}).{LATER}"
            return self._failed("timeout", told, True)
        if status == 429:
            told = f"{self.server} gets too many requests.{LATER}"
            return self._failed("rate_limit", told, True)
        if status == 409 or (status >= 500 and status != 501):
            told = f"{self.server} failed with status {status}.{LATER}"
            return self._failed("overloaded", told, True)
        return self._failed(
            "bad_request",
            f"{self.server} refused the request (status {status}). Correct the model or"
            " the parameters of the agent.",
        )

    def _not_found(self) -> ModelFailed:
        if self.error and UNKNOWN_MODEL.search(self.text):
            return self._failed(
                "not_found",
                f"{self.server} has no model {self.model!r}. Pick one it offers.",
            )
        return self._failed(
            "not_found",
            f"There is nothing at {self.address}. Check the base URL of provider"
            f" {self.endpoint.slug!r}; it often ends in /v1.",
        )

    def _failed(
        self, code: FailureCode, sentence: str, may_retry: bool = False
    ) -> ModelFailed:
        return ModelFailed(
            code, sentence + self.said, status=self.status, may_retry=may_retry
        )


def _status(value: Any) -> int:
    """Return the HTTP status in `value`, 0 if it is none."""
    text = str(value) if isinstance(value, str | int) else ""
    return int(text) if re.fullmatch(r"[45]\d\d", text, re.ASCII) else 0


def error_of(answer: dict[str, Any]) -> dict[str, Any] | None:
    """Return the error in an answer, whatever shape the server gives it."""
    error = answer.get("error")
    if isinstance(error, dict):
        return error
    if isinstance(error, str) and error:
        return {"message": error}
    for key in ("message", "detail"):
        if isinstance(answer.get(key), str):
            return {**answer, "message": answer[key]}
    return None


def words_of(error: dict[str, Any], endpoint: Endpoint) -> str:
    """Return the server's explanation on one line, cut short, without the key."""
    word = " ".join(str(error.get("message") or "").split())
    parameter = error.get("param")
    if isinstance(parameter, str) and parameter and parameter not in word:
        word += f" (parameter {parameter!r})"
    if endpoint.key:
        word = word.replace(endpoint.key, "…")
    return word if len(word) <= WORD_LENGTH else word[: WORD_LENGTH - 1] + "…"


def _kinds(error: dict[str, Any]) -> set[str]:
    words = (error.get("code"), error.get("type"), error.get("status"))
    return {one.lower() for one in words if isinstance(one, str) and one}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds a server asks to wait, from any of the headers in use."""
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _seconds(text)
    if seconds is not None or not text:
        return seconds
    if text.endswith("ms"):
        milliseconds = _seconds(text[:-2])
        return None if milliseconds is None else milliseconds / 1000
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return _seconds(text.removesuffix("s"))
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max((at - datetime.now(UTC)).total_seconds(), 0.0)


def _seconds(text: str | None) -> float | None:
    if text is None or not re.fullmatch(r"\s*\d{1,9}(\.\d{0,9})?\s*", text):
        return None
    return float(text)
