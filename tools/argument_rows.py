"""The arguments of a tool in words, for tables."""

from typing import Any, NamedTuple

from tools.forms.arguments import without_null


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


def kind_of(part: dict[str, Any]) -> str:
    """Return a type in words: `list of strings`, `one of c, f`."""
    part = without_null(part)
    if isinstance(part.get("enum"), list):
        return "one of " + ", ".join(map(str, part["enum"]))
    if part.get("type") == "array":
        inner = part.get("items")
        return f"list of {kind_of(inner)}s" if isinstance(inner, dict) else "list"
    kind = part.get("type", "any value")
    if isinstance(kind, list):
        return " or ".join(map(str, kind))
    return f"{kind} ({part['format']})" if part.get("format") else str(kind)
