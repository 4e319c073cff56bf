"""The arguments of a tool, for tables."""

import json
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from tools.schema.argument_types import describe_argument_type
from tools.schema.references import resolve_references


class ArgumentRow(NamedTuple):
    name: str
    kind: str
    """The translated type."""
    about: str
    is_required: bool
    default: str


def build_argument_rows(schema: dict[str, Any] | None) -> list[ArgumentRow] | None:
    """Return the arguments of a schema; None for a single text input."""
    if schema is None:
        return None
    schema = resolve_references(schema)
    required = schema.get("required", [])
    return [
        ArgumentRow(
            name,
            describe_argument_type(part),
            str(part.get("description", "")),
            name in required,
            "" if part.get("default") is None else str(part["default"]),
        )
        for name, part in schema.get("properties", {}).items()
        if isinstance(part, dict)
    ]


MAX_SHORT = 200
"""Characters of arguments in one line."""


def shorten_arguments(arguments: Any) -> str:
    """Return the arguments of a call in one line, such as `city=Rome, days=3`."""
    if arguments is None:
        return _("Too long to store")
    if not isinstance(arguments, dict):
        return str(arguments)[:MAX_SHORT]
    pairs = [
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in arguments.items()
    ]
    return ", ".join(pairs)[:MAX_SHORT] or _("No arguments")
