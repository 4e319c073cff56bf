"""The arguments of a tool in words, for tables."""

from typing import Any, NamedTuple

from tools.argument_kind import kind_of


class ArgumentRow(NamedTuple):
    """One argument."""

    name: str
    kind: str
    """Its type in words."""
    about: str
    is_required: bool
    default: str


def rows_of(schema: dict[str, Any] | None) -> list[ArgumentRow] | None:
    """Return the arguments of a schema; None for a tool that takes one text."""
    if schema is None:
        return None
    required = schema.get("required", [])
    return [
        ArgumentRow(
            name,
            kind_of(part),
            str(part.get("description", "")),
            name in required,
            "" if part.get("default") is None else str(part["default"]),
        )
        for name, part in schema.get("properties", {}).items()
        if isinstance(part, dict)
    ]
