"""The type of an argument as translated text."""

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tools.schema.base64_bytes import is_base64

TYPE_LABELS = {
    "string": gettext_lazy("text"),
    "integer": gettext_lazy("integer"),
    "number": gettext_lazy("number"),
    "boolean": gettext_lazy("yes or no"),
    "array": gettext_lazy("list"),
    "object": gettext_lazy("object"),
    "null": gettext_lazy("null"),
    "": gettext_lazy("any value"),
}
"""The types of JSON."""

LIST_LABELS = {
    "string": gettext_lazy("list of texts"),
    "integer": gettext_lazy("list of integers"),
    "number": gettext_lazy("list of numbers"),
    "boolean": gettext_lazy("list of yes and no"),
    "array": gettext_lazy("list of lists"),
    "object": gettext_lazy("list of objects"),
}


REFINEMENTS = {"enum", "format", "items"}
"""Keywords that `describe_argument_type` shows besides the type."""


def describe_argument_type(part: dict[str, Any]) -> str:
    """Return a type as text: `list of texts`, `one of c, f`, `any value`."""
    part = strip_null_type(part)
    if isinstance(part.get("enum"), list):
        return _("one of %(values)s") % {"values": ", ".join(map(str, part["enum"]))}
    kind = part.get("type", "")
    if kind == "array":
        return describe_list_type(part.get("items"))
    if isinstance(kind, list):
        return " / ".join(str(TYPE_LABELS.get(str(one), one)) for one in kind)
    if is_base64(part):
        return _("file")
    word = str(TYPE_LABELS.get(str(kind), kind))
    return f"{word} ({part['format']})" if part.get("format") else word


def describe_list_type(inner: Any) -> str:
    if not isinstance(inner, dict) or "type" not in strip_null_type(inner):
        return _("list")
    inner = strip_null_type(inner)
    kind = inner["type"]
    if isinstance(kind, str) and kind in LIST_LABELS and not inner.keys() & REFINEMENTS:
        return str(LIST_LABELS[kind])
    return _("list of: %(type)s") % {"type": describe_argument_type(inner)}


def strip_null_type(part: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without the null that makes a value optional."""
    for key in ("anyOf", "oneOf"):
        others = [one for one in part.get(key, []) if not is_null_type(one)]
        if len(others) == 1 and isinstance(others[0], dict):
            return {**others[0], "default": part.get("default")}
    kinds = part.get("type")
    if not isinstance(kinds, list) or "null" not in kinds or len(kinds) != 2:
        return part
    plain = {**part, "type": next((kind for kind in kinds if kind != "null"), "null")}
    if isinstance(part.get("enum"), list):
        plain["enum"] = [one for one in part["enum"] if one is not None]
    return plain


def is_null_type(part: Any) -> bool:
    """Whether a schema, which may be true or false, allows only null."""
    return isinstance(part, dict) and part.get("type") == "null"
