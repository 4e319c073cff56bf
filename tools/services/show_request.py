"""Showing what a call would send, without sending it and without the secret."""

import json
from typing import Any

from pydantic import ValidationError

from tools.credentials import COVER, Opened
from tools.errors import ToolFailed
from tools.exchange import Asked
from tools.kinds.http import NotConfigured, with_key
from tools.kinds.http_config import HttpConfig, request_of
from tools.kinds.values import text_of
from tools.models import Credential
from tools.spec import ToolSpec

KEY = "RUN:STEP"
"""Stands for the idempotency key, which each call has of its own."""


def show_request(spec: ToolSpec, tool_input: Any) -> str:
    """Return the call as text: an HTTP message, a query, or arguments.

    Raise `ToolFailed` where it could not be sent.
    """
    if spec.kind == "http":
        return http_message(spec, tool_input)
    if spec.kind == "sql":
        return query_text(spec, tool_input)
    if spec.kind == "python":
        return pretty(tool_input) or '""'
    what = spec.config.get("function") if spec.kind == "function" else spec.name
    return f"{what}\n\n{pretty(tool_input)}"


def http_message(spec: ToolSpec, tool_input: Any) -> str:
    """Return method, address, headers and body; the credential is covered."""
    try:
        config = HttpConfig.model_validate(spec.config)
    except ValidationError as error:
        raise NotConfigured(error) from None
    asked = request_of(config, tool_input)
    if spec.effect != "read":
        asked = with_key(asked, KEY)
    if config.credential is not None:
        asked = with_covered(asked, config.credential)
    lines = [f"{asked.method} {asked.url}"]
    lines += [f"{name}: {value}" for name, value in asked.headers.items()]
    body = [] if asked.content is None else ["", asked.content.decode("utf-8")]
    return "\n".join([*lines, *body])


def with_covered(asked: Asked, pk: int) -> Asked:
    """Return the request with the credential's place in it filled by a word."""
    row = Credential.objects.filter(pk=pk).first()
    if row is None:
        return asked
    opened = Opened(row.kind, row.field, tuple(row.hosts), COVER)
    covered = opened.added_to(asked)
    if row.kind == Credential.Kind.BASIC:  # the word is not to be encoded
        headers = {**covered.headers, "authorization": f"Basic {COVER}"}
        return Asked(covered.url, covered.method, headers, covered.content)
    return Asked(
        covered.url.replace("%5Bsecret%5D", COVER),
        covered.method,
        covered.headers,
        covered.content,
    )


def query_text(spec: ToolSpec, tool_input: Any) -> str:
    """Return the statement and its values."""
    config, given = spec.config, tool_input if isinstance(tool_input, dict) else {}
    where = f"On the database {config.get('connection')!r}, reading only:"
    if config.get("query"):
        return f"{where}\n{config['query']}\n\n{pretty(given)}"
    return f"{where}\n{given.get('query') or text_of(tool_input)}"


def pretty(value: Any) -> str:
    """Return arguments with line breaks; a text as it is."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except ValueError:
        raise ToolFailed("The arguments are nested too deeply.") from None
