"""Tools that are one HTTP request."""

import json
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from tools.credentials import Opened, open_credential
from tools.errors import ToolFailed
from tools.exchange import Answered, Asked, exchange
from tools.json_pointer import pick
from tools.kinds.call import Call
from tools.kinds.http_config import HttpConfig, request_of
from tools.outbound import policy_of

MAX_TOLD = 600
"""Characters of a refusal that the model is told."""


class NotConfigured(ToolFailed):
    """The definition cannot be used."""

    def __init__(self, error: ValidationError) -> None:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        super().__init__(f"This tool is not set up rightly. {place}: {first['msg']}.")


class Refused(ToolFailed):
    """The server did not do what it was asked."""

    def __init__(self, where: str, status: int, told: str) -> None:
        super().__init__(f"{where} answered {status}{f': {told}' if told else '.'}")


class NoText(ToolFailed):
    """The answer is nothing a model can read."""

    def __init__(self, answered: Answered) -> None:
        super().__init__(
            f"{answered.where} answered with {len(answered.body)} bytes of "
            f"{answered.content_type.partition(';')[0] or 'an unnamed type'}, no text."
        )


def call_http(call: Call) -> Any:
    """Send one request and return the answer, or the part of it that is asked for."""
    try:
        config = HttpConfig.model_validate(call.spec.config)
    except ValidationError as error:
        raise NotConfigured(error) from None
    asked = request_of(config, call.tool_input)
    if call.idempotency_key:
        asked = with_key(asked, call.idempotency_key)
    opened = None
    if config.credential is not None:
        opened = open_credential(config.credential, tool_id=call.spec.tool_id)
        asked = opened.added_to(asked)
    answered = exchange(
        asked,
        policy=policy_of("tool", only_hosts=config.hosts),
        watch=call.watch,
        max_bytes=config.max_bytes,
    )
    return value_of(answered, config.pick, opened)


def with_key(asked: Asked, key: str) -> Asked:
    """Return the request with the key by which a server knows a repeated call."""
    return replace(asked, headers={"idempotency-key": key, **asked.headers})


def value_of(answered: Answered, pointer: str, opened: Opened | None) -> Any:
    """Return JSON parsed and picked, text as it is; raise `ToolFailed` for the rest."""
    text = answered.text
    if opened is not None:
        text = opened.covered(text)
    if answered.status >= 300:
        raise Refused(answered.where, answered.status, told_of(text))
    if not answered.body:
        return {"status": answered.status}
    is_json = "json" in answered.content_type
    if is_json or pointer:
        try:
            picked = pick(json.loads(text), pointer)
            # JSON can write each letter as an escape.
            return picked if opened is None else opened.covered_in(picked)
        except (ValueError, RecursionError):
            if pointer:
                answered.json()  # it says what came instead
    if not is_text(answered):
        raise NoText(answered)
    return text


def told_of(text: str) -> str:
    """Return the beginning of a refusal, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_TOLD else f"{line[:MAX_TOLD]}…"


def is_text(answered: Answered) -> bool:
    """Whether the body claims to be text, or looks like it."""
    kind = answered.content_type.partition(";")[0].strip().lower()
    if kind.startswith(("image/", "audio/", "video/", "font/")):
        return False
    return b"\0" not in answered.body[:4096]
