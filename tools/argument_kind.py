"""What an argument takes, in words."""

from typing import Any

WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "yes or no",
    "array": "list",
    "object": "object",
    "null": "nothing",
    "": "anything",
}
"""What pages call the types of JSON, in forms and in tables alike."""

COUNTED = ("text", "whole number", "number", "object", "list")


def kind_of(part: dict[str, Any]) -> str:
    """Return a type in words: `list of texts`, `one of c, f`, `anything`."""
    part = without_null(part)
    if isinstance(part.get("enum"), list):
        return "one of " + ", ".join(map(str, part["enum"]))
    kind = part.get("type", "")
    if kind == "array":
        return list_of(part.get("items"))
    if isinstance(kind, list):
        return " or ".join(WORDS.get(str(one), str(one)) for one in kind)
    word = WORDS.get(str(kind), str(kind))
    return f"{word} ({part['format']})" if part.get("format") else word


def list_of(inner: Any) -> str:
    """Return a list in words; of members that may be anything, just that."""
    if not isinstance(inner, dict) or "type" not in without_null(inner):
        return "list"
    kind = kind_of(inner)
    return f"list of {kind}s" if kind in COUNTED else f"list of {kind}"


def without_null(part: dict[str, Any]) -> dict[str, Any]:
    """Return the one schema that is not null, of a value that may be left out."""
    for key in ("anyOf", "oneOf"):
        others = [one for one in part.get(key, []) if not is_null(one)]
        if len(others) == 1 and isinstance(others[0], dict):
            return {**others[0], "default": part.get("default")}
    kinds = part.get("type")
    if not isinstance(kinds, list) or "null" not in kinds or len(kinds) != 2:
        return part
    plain = {**part, "type": next((kind for kind in kinds if kind != "null"), "null")}
    if isinstance(part.get("enum"), list):
        plain["enum"] = [one for one in part["enum"] if one is not None]
    return plain


def is_null(part: Any) -> bool:
    """Whether a schema, which may be just true or false, means null alone."""
    return isinstance(part, dict) and part.get("type") == "null"
