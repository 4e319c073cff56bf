"""Showing what a call would send, without sending it and without the secret."""

import json
from typing import Any

from pydantic import ValidationError

from tools.credentials import CREDENTIAL_MASK, OpenCredential
from tools.errors import ToolFailed
from tools.kinds.http import InvalidToolConfig, add_idempotency_key
from tools.kinds.http_config import HttpConfig
from tools.kinds.http_request import build_http_request
from tools.models import Credential
from tools.net.http_exchange import Request
from tools.sandbox.values import format_tool_value
from tools.spec import ToolSpec

SAMPLE_IDEMPOTENCY_KEY = "RUN:STEP"
"""Stands for the idempotency key, which each call has of its own."""


def show_request(spec: ToolSpec, tool_input: Any) -> str:
    """Return the call as text: an HTTP message, a query, or arguments.

    Raise `ToolFailed` where it could not be sent.
    """
    if spec.kind == "http":
        return format_http_message(spec, tool_input)
    if spec.kind == "sql":
        return format_sql_query(spec, tool_input)
    if spec.kind == "python":
        return format_request_arguments(tool_input) or '""'
    what = spec.config.get("function") if spec.kind == "function" else spec.name
    return f"{what}\n\n{format_request_arguments(tool_input)}"


def format_http_message(spec: ToolSpec, tool_input: Any) -> str:
    """Return method, address, headers and body; the credential is covered."""
    try:
        config = HttpConfig.model_validate(spec.config)
    except ValidationError as error:
        raise InvalidToolConfig(error) from None
    asked = build_http_request(config, tool_input)
    if spec.effect != "read":
        asked = add_idempotency_key(asked, SAMPLE_IDEMPOTENCY_KEY)
    if config.credential is not None:
        asked = add_masked_credential(asked, config.credential)
    lines = [f"{asked.method} {asked.url}"]
    lines += [f"{name}: {value}" for name, value in asked.headers.items()]
    body = (
        [] if asked.content is None else ["", asked.content.decode("utf-8", "replace")]
    )
    return "\n".join([*lines, *body])


def add_masked_credential(asked: Request, pk: int) -> Request:
    """Return the request with the credential's place in it filled by a word."""
    row = Credential.objects.filter(pk=pk).first()
    if row is None:
        return asked
    opened = OpenCredential(row.kind, row.field, tuple(row.hosts), CREDENTIAL_MASK)
    covered = opened.apply_to(asked)
    if row.kind == Credential.Kind.BASIC:  # the word is not to be encoded
        headers = {**covered.headers, "authorization": f"Basic {CREDENTIAL_MASK}"}
        return Request(covered.url, covered.method, headers, covered.content)
    return Request(
        covered.url.replace("%5Bsecret%5D", CREDENTIAL_MASK),
        covered.method,
        covered.headers,
        covered.content,
    )


def format_sql_query(spec: ToolSpec, tool_input: Any) -> str:
    config, given = spec.config, tool_input if isinstance(tool_input, dict) else {}
    where = f"On the database {config.get('connection')!r}, reading only:"
    if config.get("query"):
        return f"{where}\n{config['query']}\n\n{format_request_arguments(given)}"
    return f"{where}\n{given.get('query') or format_tool_value(tool_input)}"


def format_request_arguments(value: Any) -> str:
    """Return arguments with line breaks; a text as it is."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except ValueError:
        raise ToolFailed("The arguments are nested too deeply.") from None
