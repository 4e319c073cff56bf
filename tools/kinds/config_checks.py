"""Whether a definition can be called at all, known before any call is made."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from pydantic import ValidationError

from tools.errors import ToolFailed
from tools.kinds.http_config import HttpConfig
from tools.kinds.mcp import McpConfig
from tools.kinds.python import PythonConfig, find_code_flaw, find_cpython_flaw
from tools.kinds.sql import SqlConfig
from tools.net.outbound_policy import get_net_policy
from tools.registry import find_function
from tools.sql.connections import find_sql_connection
from tools.sql.postgres_query import find_argument_names
from tools.text.validation_message import strip_value_error


def find_config_flaws(kind: str, config: dict[str, Any]) -> list[str]:
    """Return a sentence for each flaw of a tool's `config`; nothing is executed."""
    try:
        if kind in CONFIG_CHECKS:
            CONFIG_CHECKS[kind](config)
    except ToolFailed as error:
        return [str(error)]
    except ValidationError as error:
        return [
            f"{'.'.join(map(str, one['loc'])) or 'config'}: "
            f"{strip_value_error(one['msg'])}."
            for one in error.errors(include_url=False, include_context=False)
        ]
    return []


def find_name_flaws(
    kind: str, config: dict[str, Any], schema: dict[str, Any] | None
) -> list[str]:
    """Return a sentence for each name in a sound `config` that no argument fills."""
    if schema is not None and any(key in schema for key in COMPOSITION_KEYWORDS):
        return []
    known = {"input"} if schema is None else set(schema.get("properties") or {})
    return [
        describe_unknown_argument(name, known)
        for bare, name in sorted(find_used_names(kind, config).items())
        if bare not in known
    ]


def describe_unknown_argument(name: str, known: set[str]) -> str:
    """Say that a name, as it is written, is none of the known arguments."""
    if not known:
        return _("%(name)s is not an argument of this tool, which has none.") % {
            "name": name
        }
    return _("%(name)s is not an argument of this tool. Arguments: %(known)s.") % {
        "name": name,
        "known": ", ".join(sorted(known)),
    }


COMPOSITION_KEYWORDS = ("$ref", "allOf", "anyOf", "oneOf")
"""Keys of a schema whose arguments are not all listed beside them."""


def find_used_names(kind: str, config: dict[str, Any]) -> dict[str, str]:
    """Return the names a request or query uses, and how each is written there."""
    if kind == "http":
        found = HttpConfig.model_validate(config).placeholders
        return {name: f"{{{name}}}" for name in found}
    if kind == "sql":
        query = SqlConfig.model_validate(config).query
        return {name: f":{name}" for name in find_argument_names(query)}
    return {}


def check_function_config(config: dict[str, Any]) -> None:
    """Refuse what is not registered."""
    find_function(str(config.get("function", "")))


def check_http_config(config: dict[str, Any]) -> None:
    """Refuse a request that could not be sent."""
    get_net_policy("tool").check_url(HttpConfig.model_validate(config).url)


def check_mcp_config(config: dict[str, Any]) -> None:
    """Refuse what names no tool of a server."""
    McpConfig.model_validate(config)


def check_python_config(config: dict[str, Any]) -> None:
    """Refuse code that cannot be read."""
    found = PythonConfig.model_validate(config)
    if flaw := find_code_flaw(found.code):
        raise ToolFailed(flaw)
    if found.interpreter == "cpython" and (flaw := find_cpython_flaw()):
        raise ToolFailed(flaw)


def check_sql_config(config: dict[str, Any]) -> None:
    """Refuse a database the operator did not name."""
    found = SqlConfig.model_validate(config)
    find_sql_connection(found.connection, settings.SQL_CONNECTIONS)


CONFIG_CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {
    "function": check_function_config,
    "http": check_http_config,
    "mcp": check_mcp_config,
    "python": check_python_config,
    "sql": check_sql_config,
}
