"""Whether a definition can be called at all, known before any call is made."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from pydantic import ValidationError

from tools.errors import ToolFailed
from tools.kinds.http_config import HttpConfig
from tools.kinds.mcp import McpConfig
from tools.kinds.python import PythonConfig, flaw_of_code, flaw_of_cpython
from tools.kinds.sql import SqlConfig
from tools.outbound import policy_of
from tools.registry import find_function
from tools.sql.connections import find_connection
from tools.sql.postgres_text import names_in_query


def flaws_of_config(kind: str, config: dict[str, Any]) -> list[str]:
    """Return a sentence for each flaw of a tool's `config`; nothing is executed."""
    try:
        if kind in CHECKS:
            CHECKS[kind](config)
    except ToolFailed as error:
        return [str(error)]
    except ValidationError as error:
        return [
            f"{'.'.join(map(str, one['loc'])) or 'config'}: "
            f"{one['msg'].removeprefix('Value error, ')}."
            for one in error.errors(include_url=False, include_context=False)
        ]
    return []


def flaws_of_names(
    kind: str, config: dict[str, Any], schema: dict[str, Any] | None
) -> list[str]:
    """Return a sentence for each name in a sound `config` that no argument fills."""
    if schema is not None and any(key in schema for key in COMPOSED):
        return []
    known = {"input"} if schema is None else set(schema.get("properties") or {})
    return [
        no_argument(name, known)
        for bare, name in sorted(names_in(kind, config).items())
        if bare not in known
    ]


def no_argument(name: str, known: set[str]) -> str:
    """Say that a name, as it is written, is none of the known arguments."""
    listed = ", ".join(sorted(known)) or "none"
    return f"{name} is no argument of this tool. There are: {listed}."


COMPOSED = ("$ref", "allOf", "anyOf", "oneOf")
"""Keys of a schema whose arguments are not all listed beside them."""


def names_in(kind: str, config: dict[str, Any]) -> dict[str, str]:
    """Return the names a request or query uses, and how each is written there."""
    if kind == "http":
        found = HttpConfig.model_validate(config).placeholders
        return {name: f"{{{name}}}" for name in found}
    if kind == "sql":
        query = SqlConfig.model_validate(config).query
        return {name: f":{name}" for name in names_in_query(query)}
    return {}


def check_function(config: dict[str, Any]) -> None:
    """Refuse what is not registered."""
    find_function(str(config.get("function", "")))


def check_http(config: dict[str, Any]) -> None:
    """Refuse a request that could not be sent."""
    policy_of("tool").check_url(HttpConfig.model_validate(config).url)


def check_mcp(config: dict[str, Any]) -> None:
    """Refuse what names no tool of a server."""
    McpConfig.model_validate(config)


def check_python(config: dict[str, Any]) -> None:
    """Refuse code that cannot be read."""
    found = PythonConfig.model_validate(config)
    if flaw := flaw_of_code(found.code):
        raise ToolFailed(flaw)
    if found.interpreter == "cpython" and (flaw := flaw_of_cpython()):
        raise ToolFailed(flaw)


def check_sql(config: dict[str, Any]) -> None:
    """Refuse a database the operator did not name."""
    found = SqlConfig.model_validate(config)
    find_connection(found.connection, settings.SQL_CONNECTIONS)


CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {
    "function": check_function,
    "http": check_http,
    "mcp": check_mcp,
    "python": check_python,
    "sql": check_sql,
}
