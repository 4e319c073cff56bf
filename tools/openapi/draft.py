"""The tool that is being made of one operation, and what it had to leave out."""

import re
from typing import Any

from django.utils.translation import gettext as _

from tools.openapi.document import OpenApiDocument
from tools.openapi.schemas import MAX_DESCRIPTION, ReferenceInliner
from tools.text.storable import replace_unstorable

MAX_NAME = 100
"""Characters of a name that a reason shows."""


class UnsupportedOperation(Exception):
    """The operation needs something that HTTP tools cannot send."""


class OperationDraft:
    """Arguments and request of one operation, as they are collected."""

    def __init__(self, document: OpenApiDocument) -> None:
        self.document = document
        self.inliner = ReferenceInliner(document)
        self.properties: dict[str, Any] = {}
        self.required: list[str] = []
        self.config: dict[str, Any] = {}
        self.omitted: list[str] = []
        """Inputs that cannot be sent, for a person."""

    def omit(self, what: str, *, needed: bool) -> None:
        """Leave an input out; raise `UnsupportedOperation` if the server needs it."""
        if needed:
            raise UnsupportedOperation(
                _("it requires %(input)s, which tools cannot send") % {"input": what}
            )
        self.omitted.append(replace_unstorable(what))

    def add_argument(self, name: str, schema: Any, *, needed: bool) -> str:
        """Add an argument of the tool, its references resolved; return its name."""
        argument = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "value"
        if argument[0].isdigit():
            argument = f"_{argument}"
        while argument in self.properties:
            argument += "_"
        self.properties[argument] = schema if isinstance(schema, dict) else {}
        if needed:
            self.required.append(argument)
        return argument

    def set_style(self, name: str, style: str) -> None:
        """Set how a query parameter or form field is written; raise if it has another.

        A query parameter and a form field of one name share the style.
        """
        fields = self.config.get("form") or self.config.get("multipart") or {}
        is_both = name in fields and name in self.config.get("query", {})
        if is_both and style != self.get_style(name):
            raise UnsupportedOperation(
                _("“%(name)s” is both a query parameter and a form field")
                % {"name": name[:MAX_NAME]}
            )
        if style == "form":
            joined = self.config.setdefault("joined", [])
            joined += [name] if name not in joined else []
        elif style:
            self.config.setdefault("styles", {})[name] = style

    def get_style(self, name: str) -> str:
        """Return the style that was set, empty for none."""
        if name in self.config.get("joined", ()):
            return "form"
        return str(self.config.get("styles", {}).get(name, ""))


def describe_schema(schema: Any, description: Any) -> dict[str, Any]:
    found = schema if isinstance(schema, dict) else {}
    if isinstance(description, str):
        return {**found, "description": description[:MAX_DESCRIPTION]}
    return found


def get_schema_types(schema: Any) -> set[str]:
    """Return the JSON types that a schema names, also in alternatives."""
    if not isinstance(schema, dict):
        return set()
    named = schema.get("type")
    listed = named if isinstance(named, list) else [named]
    types = {one for one in listed if isinstance(one, str)}
    for key in ("anyOf", "oneOf", "allOf"):
        parts = schema.get(key)
        for part in parts if isinstance(parts, list) else ():
            types |= get_schema_types(part)
    if not types and isinstance(schema.get("properties"), dict):
        return {"object"}
    return types - {"null"}


def drop_null_alternative(schema: Any) -> Any:
    """Return the only alternative to null, which generators write for optional."""
    if isinstance(schema, dict):
        for key in ("anyOf", "oneOf"):
            parts = schema.get(key)
            if isinstance(parts, list):
                others = [one for one in parts if one != {"type": "null"}]
                if len(others) == 1 and isinstance(others[0], dict):
                    own = {k: v for k, v in schema.items() if k != key}
                    return {**others[0], **own}
    return schema


def get_form_fields(schema: Any) -> tuple[dict[str, Any], list[str]] | None:
    """Return properties and required names of an object, None if it is not that simple.

    The parts of `allOf` are merged.
    """
    if not isinstance(schema, dict) or any(k in schema for k in ("anyOf", "oneOf")):
        return None
    own = schema.get("properties")
    properties = dict(own) if isinstance(own, dict) else {}
    listed = schema.get("required")
    required = [*listed] if isinstance(listed, list) else []
    parts = schema.get("allOf")
    for part in parts if isinstance(parts, list) else ():
        fields = get_form_fields(part)
        if fields is None:
            return None
        properties |= fields[0]
        required += fields[1]
    is_listed = bool(properties) or isinstance(own, dict)
    return (properties, required) if is_listed else None
