"""Error responses as `ModelCallError`, from status, headers and body."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from runs.llm.base import Endpoint
from runs.llm.errors import FailureCode, ModelCallError
from runs.llm.wire import InvalidJson, encode_wire_json, parse_json_object
from tools.text.translatable import join_sentences, translatable

MAX_EXPLANATION_LENGTH = 300
"""Characters of the server's own explanation that are quoted."""

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
    r"api[ _]key (not valid|expired)|invalid[ _]api[ _]key"
    r"|no connected db",  # LiteLLM without a database, about an unknown key
    re.IGNORECASE,
)
UNKNOWN_MODEL = re.compile(r"\bmodel\b|\bdeployment\b", re.IGNORECASE)

OVERLOADED = frozenset(("overloaded_error", "server_error", "api_error", "overloaded"))
RATE_LIMITED = frozenset(
    ("rate_limit_error", "rate_limit_exceeded", "resource_exhausted")
)
WRONG_KEYS = frozenset(("authentication_error", "invalid_api_key"))
DENIED = frozenset(("permission_error", "permission_denied"))


def parse_refusal(
    endpoint: Endpoint,
    status: int,
    body: bytes,
    *,
    headers: Mapping[str, str],
    model: str,
    address: str,
) -> ModelCallError:
    # Gemini wraps its error object in a list, and LiteLLM in an event.
    inner = body.strip()
    if inner.startswith(b"data:"):
        inner = inner.removeprefix(b"data:").partition(b"\n\n")[0].strip()
    inner = inner.removeprefix(b"[").removesuffix(b"]")
    try:
        error = extract_error(parse_json_object(inner))
    except InvalidJson:
        error = None
    word = extract_error_message(error, endpoint) if error is not None else ""
    failure = Refusal(endpoint, status, error or {}, word, model, address)
    failed = failure.build_error()
    if failed.may_retry:
        failed.retry_after = parse_retry_after(headers)
    return failed


def parse_stream_refusal(
    endpoint: Endpoint, error: dict[str, Any], *, model: str
) -> ModelCallError:
    """Return the error for an error object in the middle of a stream."""
    status = next(
        filter(None, map(_parse_status, (error.get("code"), error.get("status")))), 0
    )
    word = extract_error_message(error, endpoint)
    address = endpoint.base_url
    kinds = _error_kinds(error)
    if not status:
        status = 400
        if kinds & OVERLOADED or not kinds:
            status = 503
        elif kinds & RATE_LIMITED:
            status = 429
        elif kinds & WRONG_KEYS:
            status = 401
        elif kinds & DENIED:
            status = 403
    return Refusal(endpoint, status, error, word, model, address).build_error()


class Refusal:
    """One error response, and the sentence for it."""

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
        self.explanation = word
        self.model = model
        self.address = address
        self.text = " ".join((*_error_kinds(error), word))
        self.server = endpoint.base_url or address

    def build_error(self) -> ModelCallError:
        """Return the error: by the server's explanation first, then by the status."""
        if self.status in (400, 403, 413, 422, 500) and TOO_LONG.search(self.text):
            return self._build_model_error(
                "context_too_long",
                translatable(
                    "The request is longer than model %(model)s can take. Shorten the "
                    "question or give the agent a context limit.",
                    model=repr(self.model),
                ),
            )
        if self.status in (400, 403, 422, 451) and FILTERED.search(self.text):
            return self._build_model_error(
                "content_filter",
                translatable(
                    "The server at %(server)s refused the request because of its "
                    "content. Change the question or the prompt.",
                    server=self.server,
                ),
            )
        if self.status == 401 or (
            self.status in (400, 403) and WRONG_KEY.search(self.text)
        ):
            return self._build_model_error(
                "auth",
                translatable(
                    "The server at %(server)s did not accept the key. Check the key of "
                    "provider %(provider)s.",
                    server=self.server,
                    provider=repr(self.endpoint.slug),
                ),
            )
        if self.status == 403:
            return self._build_model_error(
                "forbidden",
                translatable(
                    "The server at %(server)s denied access (status 403). The key of "
                    "provider %(provider)s may not be allowed to use model %(model)s, "
                    "or the server refuses this region or address.",
                    server=self.server,
                    provider=repr(self.endpoint.slug),
                    model=repr(self.model),
                ),
            )
        if self.status in (402, 429) and (
            self.status == 402 or NO_CREDIT.search(self.text)
        ):
            return self._build_model_error(
                "rate_limit",
                translatable(
                    "The account of provider %(provider)s has no credit left. Add "
                    "credit there, then resume the run.",
                    provider=repr(self.endpoint.slug),
                ),
            )
        return self._build_error_by_status()

    def _build_error_by_status(self) -> ModelCallError:
        status = self.status
        if status in (404, 405, 410):
            return self._build_not_found()
        if status == 413:
            return self._build_model_error(
                "context_too_long",
                translatable(
                    "The server at %(server)s refused the request as too large. "
                    "Shorten the question or give the agent a context limit.",
                    server=self.server,
                ),
            )
        if status in (408, 504):
            message = translatable(
                "The server at %(server)s timed out (status %(status)s).",
                server=self.server,
                status=status,
            )
            return self._build_model_error("timeout", message, True)
        if status == 429:
            message = translatable(
                "The server at %(server)s is rate-limiting requests.",
                server=self.server,
            )
            return self._build_model_error("rate_limit", message, True)
        if status == 409 or (status >= 500 and status != 501):
            message = translatable(
                "The server at %(server)s failed with status %(status)s.",
                server=self.server,
                status=status,
            )
            return self._build_model_error("overloaded", message, True)
        return self._build_model_error(
            "bad_request",
            translatable(
                "The server at %(server)s refused the request (status %(status)s). "
                "Correct the model or the parameters of the agent.",
                server=self.server,
                status=status,
            ),
        )

    def _build_not_found(self) -> ModelCallError:
        if self.error and UNKNOWN_MODEL.search(self.text):
            return self._build_model_error(
                "not_found",
                translatable(
                    "The server at %(server)s has no model %(model)s. Select another "
                    "model.",
                    server=self.server,
                    model=repr(self.model),
                ),
            )
        return self._build_model_error(
            "not_found",
            translatable(
                "Nothing was found at %(address)s. Check the base URL of provider "
                "%(provider)s; it often ends in /v1.",
                address=self.address,
                provider=repr(self.endpoint.slug),
            ),
        )

    def _build_model_error(
        self, code: FailureCode, sentence: str, may_retry: bool = False
    ) -> ModelCallError:
        sentences = [sentence]
        if self.explanation:
            quoted = translatable("It says: %(words)s", words=self.explanation)
            sentences.append(quoted)
        return ModelCallError(
            code,
            join_sentences(sentences),
            status=self.status,
            may_retry=may_retry,
        )


def _parse_status(value: Any) -> int:
    """Return the HTTP status in `value`, 0 if there is none."""
    text = str(value) if isinstance(value, str | int) else ""
    return int(text) if re.fullmatch(r"[45]\d\d", text, re.ASCII) else 0


def extract_error(answer: dict[str, Any]) -> dict[str, Any] | None:
    """Return the error object in a response, in any of the shapes in use."""
    error = answer.get("error")
    if isinstance(error, dict):
        return error
    if isinstance(error, str) and error:
        return {"message": error}
    for key in ("message", "detail"):
        value = answer.get(key)
        if isinstance(value, list | dict):  # FastAPI lists what is wrong with a request
            value = encode_wire_json(value).decode()
        if isinstance(value, str):
            return {**answer, "message": value}
    return None


def extract_error_message(error: dict[str, Any], endpoint: Endpoint) -> str:
    """Return the server's explanation on one line, shortened, without the key."""
    word = " ".join(str(error.get("message") or "").split())
    parameter = error.get("param")
    if isinstance(parameter, str) and parameter and parameter not in word:
        word += f" (parameter {parameter!r})"
    if endpoint.key:
        word = word.replace(endpoint.key, "…")
    return (
        word
        if len(word) <= MAX_EXPLANATION_LENGTH
        else word[: MAX_EXPLANATION_LENGTH - 1] + "…"
    )


def _error_kinds(error: dict[str, Any]) -> set[str]:
    words = (error.get("code"), error.get("type"), error.get("status"))
    return {one.lower() for one in words if isinstance(one, str) and one}


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, from any of the headers in use."""
    milliseconds = _parse_seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _parse_seconds(text)
    if seconds is not None or not text:
        return seconds
    if text.endswith("ms"):
        milliseconds = _parse_seconds(text[:-2])
        return None if milliseconds is None else milliseconds / 1000
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return _parse_seconds(text.removesuffix("s"))
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max((at - datetime.now(UTC)).total_seconds(), 0.0)


def _parse_seconds(text: str | None) -> float | None:
    if text is None or not re.fullmatch(r"\s*\d{1,9}(\.\d{0,9})?\s*", text):
        return None
    return float(text)
