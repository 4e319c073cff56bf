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

MAX_REASON = 600
"""Characters of a refusal that the model is told."""


class InvalidToolConfig(ToolFailed):
    """The definition cannot be used."""

    def __init__(self, error: ValidationError) -> None:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        super().__init__(f"This tool is not set up rightly. {place}: {first['msg']}.")


class RequestRefused(ToolFailed):
    """The server did not do what it was asked."""

    def __init__(self, where: str, status: int, told: str) -> None:
        super().__init__(f"{where} answered {status}{f': {told}' if told else '.'}")


class UnreadableResponse(ToolFailed):
    """The answer is nothing a model can read."""

    def __init__(self, answered: Response) -> None:
        super().__init__(
            f"{answered.where} answered with {len(answered.body)} bytes of "
            f"{answered.content_type.partition(';')[0] or 'an unnamed type'}, no text."
        )


def call_http(call: PreparedCall) -> Any:
    """Send one request and return the answer, or the part of it that is asked for."""
    try:
        config = HttpConfig.model_validate(call.spec.config)
    except ValidationError as error:
        raise InvalidToolConfig(error) from None
    asked = build_http_request(config, call.tool_input)
    if call.idempotency_key:
        asked = add_idempotency_key(asked, call.idempotency_key)
    opened = None
    if config.credential is not None:
        opened = open_credential(config.credential, tool_id=call.spec.tool_id)
        asked = opened.apply_to(asked)
    answered = send_request(
        asked,
        policy=get_net_policy("tool", only_hosts=config.hosts),
        deadline=call.deadline,
        max_bytes=config.max_bytes,
    )
    return parse_response_value(answered, config.pick, opened)


def add_idempotency_key(asked: Request, key: str) -> Request:
    """Return the request with the key by which a server knows a repeated call."""
    return replace(asked, headers={"idempotency-key": key, **asked.headers})


def parse_response_value(
    answered: Response, pointer: str, opened: OpenCredential | None
) -> Any:
    """Return JSON parsed and picked, text as it is; raise `ToolFailed` for the rest."""
    text = answered.text
    if opened is not None:
        text = opened.mask_secret(text)
    if answered.status >= 300:
        raise RequestRefused(answered.where, answered.status, shorten_refusal(text))
    if not answered.body:
        return {"status": answered.status}
    is_json = "json" in answered.content_type
    if is_json or pointer:
        try:
            picked = resolve_json_pointer(json.loads(text), pointer)
            # JSON can write each letter as an escape.
            return picked if opened is None else opened.mask_secret_in(picked)
        except (ValueError, RecursionError):
            if pointer:
                answered.json()  # it says what came instead
    if not is_text_response(answered):
        raise UnreadableResponse(answered)
    return text


def shorten_refusal(text: str) -> str:
    """Return the beginning of a refusal, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_REASON else f"{line[:MAX_REASON]}…"


def is_text_response(answered: Response) -> bool:
    """Whether the body claims to be text, or looks like it."""
    kind = answered.content_type.partition(";")[0].strip().lower()
    if kind.startswith(("image/", "audio/", "video/", "font/")):
        return False
    return b"\0" not in answered.body[:4096]
