"""Tools that are one HTTP request."""

import json
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from tools.credentials import OpenCredential, open_credential
from tools.errors import ToolFailed
from tools.kinds.call import PreparedCall
from tools.kinds.http_config import HttpConfig
from tools.kinds.http_request import build_http_request
from tools.net.http_exchange import Request, Response, send_request
from tools.net.outbound_policy import get_net_policy
from tools.text.json_pointer import resolve_json_pointer
from tools.text.validation_message import strip_value_error

MAX_REASON = 600
"""Characters of an error response that the model sees."""


class InvalidToolConfig(ToolFailed):
    """The stored definition is not valid."""

    def __init__(self, error: ValidationError) -> None:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        why = strip_value_error(first["msg"])
        super().__init__(f"This tool is not configured correctly. {place}: {why}.")


class RequestRefused(ToolFailed):
    """The server answered with an error status."""

    def __init__(self, where: str, status: int, detail: str) -> None:
        super().__init__(f"{where} answered {status}{f': {detail}' if detail else '.'}")


class UnreadableResponse(ToolFailed):
    """The response is not text."""

    def __init__(self, response: Response) -> None:
        super().__init__(
            f"{response.where} answered with {len(response.body):,} bytes of "
            f"{response.content_type.partition(';')[0] or 'an unnamed type'}, no text."
        )


def call_http(call: PreparedCall) -> Any:
    """Send one request and return the response, or the part that `pick` selects."""
    try:
        config = HttpConfig.model_validate(call.spec.config)
    except ValidationError as error:
        raise InvalidToolConfig(error) from None
    request = build_http_request(config, call.tool_input)
    if call.idempotency_key:
        request = add_idempotency_key(request, call.idempotency_key)
    opened = None
    if config.credential is not None:
        opened = open_credential(
            config.credential, tool_id=call.spec.tool_id, owner_id=call.owner_id
        )
        request = opened.apply_to(request)
    response = send_request(
        request,
        policy=get_net_policy("tool", only_hosts=config.hosts),
        deadline=call.deadline,
        max_bytes=config.max_bytes,
        trace=call.exchange.trace if call.exchange else None,
    )
    if call.exchange is not None:
        call.exchange.record(response, opened.mask_secret if opened else str)
    return parse_response_value(response, config.pick, opened)


def add_idempotency_key(request: Request, key: str) -> Request:
    """Return the request with the key by which a server recognizes a repeated call."""
    return replace(request, headers={"idempotency-key": key, **request.headers})


def parse_response_value(
    response: Response, pointer: str, opened: OpenCredential | None
) -> Any:
    """Return parsed JSON, or text as it is; raise `ToolFailed` for anything else."""
    text = response.text
    if opened is not None:
        text = opened.mask_secret(text)
    if response.status >= 300:
        raise RequestRefused(
            response.where, response.status, shorten_error_response(text)
        )
    if not response.body:
        return {"status": response.status}
    is_json = "json" in response.content_type
    if is_json or pointer:
        try:
            picked = resolve_json_pointer(json.loads(text), pointer)
            # JSON can write each letter as an escape.
            return picked if opened is None else opened.mask_secret_in(picked)
        except (ValueError, RecursionError):
            if pointer:
                response.json()  # its error names the type of the response
    if not is_text_response(response):
        raise UnreadableResponse(response)
    return text


def shorten_error_response(text: str) -> str:
    """Return the beginning of an error response, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_REASON else f"{line[:MAX_REASON]}…"


def is_text_response(response: Response) -> bool:
    """Whether the body is declared as text, or looks like it."""
    kind = response.content_type.partition(";")[0].strip().lower()
    if kind.startswith(("image/", "audio/", "video/", "font/")):
        return False
    return b"\0" not in response.body[:4096]
