"""Make the JSON Schemas of an OpenAPI document self-contained."""

from typing import Any

from tools.openapi.document import OpenApiDocument
from tools.schema.check import iter_pattern_flaws

MAX_NODES = 500
"""Schema objects of one operation; those beyond accept any value."""

MAX_ALL_NODES = 50_000
"""Schema objects of a whole document; later operations are refused."""

MAX_DEPTH = 12
MAX_DESCRIPTION = 2_000
"""Characters of one description."""

DROPPED_KEYWORDS = {
    *("example", "examples", "xml", "externalDocs", "discriminator", "deprecated"),
    *("nullable", "readOnly", "writeOnly", "$schema", "$id", "$anchor", "$comment"),
    *(
        "$recursiveRef",
        "$recursiveAnchor",
        "$dynamicRef",
        "$dynamicAnchor",
        "$defs",
        "definitions",
        "contentEncoding",
    ),
}
SCHEMA_MAP_KEYWORDS = ("properties", "patternProperties")
SCHEMA_LIST_KEYWORDS = ("allOf", "anyOf", "oneOf", "prefixItems")
SCHEMA_KEYWORDS = ("items", "additionalProperties", "not", "propertyNames", "contains")


class ReferenceInliner:
    """Replaces references by their targets, within limits."""

    def __init__(self, document: OpenApiDocument) -> None:
        self.document = document
        self.left = MAX_NODES

    def inline_schema(self, value: Any, seen: tuple[str, ...] = ()) -> Any:
        """Return a schema without references; `{}` if it would repeat itself."""
        if not isinstance(value, dict):
            return value if isinstance(value, bool) else {}
        self.left -= 1
        if self.left < 0 or len(seen) > MAX_DEPTH:
            return {}
        reference = value.get("$ref")
        if isinstance(reference, str):
            if reference in seen:
                return {}  # recursive: accept any value
            target = self.inline_schema(
                self.document.find_reference(reference), (*seen, reference)
            )
            about = value.get("description")
            if isinstance(target, dict) and isinstance(about, str):
                return {**target, "description": about[:MAX_DESCRIPTION]}
            return target
        return self.inline_object(value, (*seen, ""))

    def inline_object(
        self, value: dict[str, Any], seen: tuple[str, ...]
    ) -> dict[str, Any]:
        """Return one schema object with inlined parts, as JSON Schema 2020-12."""
        result: dict[str, Any] = {}
        for key, one in value.items():
            if key in DROPPED_KEYWORDS or key.startswith("x-"):
                continue
            if key == "pattern" and not is_usable_pattern(one):
                continue  # the server checks it
            if key == "patternProperties" and not all(
                map(is_usable_pattern, one or ())
            ):
                continue
            if key in SCHEMA_MAP_KEYWORDS and isinstance(one, dict):
                result[key] = {
                    str(name): self.inline_schema(part, seen)
                    for name, part in one.items()
                    if not (isinstance(part, dict) and part.get("readOnly") is True)
                }
            elif key in SCHEMA_LIST_KEYWORDS and isinstance(one, list):
                result[key] = [self.inline_schema(part, seen) for part in one]
            elif key in SCHEMA_KEYWORDS:
                result[key] = self.inline_schema(one, seen)
            elif key in ("title", "description") and isinstance(one, str):
                result[key] = one[:MAX_DESCRIPTION]
            else:
                result[key] = one
        return upgrade_schema(result, is_nullable=is_nullable(value))


def is_nullable(schema: dict[str, Any]) -> bool:
    """Whether a schema of 3.0, or of Swagger 2.0 with an extension, allows null."""
    return schema.get("nullable") is True or schema.get("x-nullable") is True


def is_usable_pattern(pattern: Any) -> bool:
    """Whether a pattern is valid in Python, short, and fast to match."""
    return isinstance(pattern, str) and not any(iter_pattern_flaws(pattern))


def upgrade_schema(schema: dict[str, Any], *, is_nullable: bool) -> dict[str, Any]:
    """Translate keywords of OpenAPI 3.0 that differ from JSON Schema."""
    kind = schema.get("type")
    if is_nullable and isinstance(kind, str):
        schema["type"] = [kind, "null"]
        if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
    for limit, exclusive in (
        ("minimum", "exclusiveMinimum"),
        ("maximum", "exclusiveMaximum"),
    ):
        is_exclusive = schema.get(exclusive)
        if isinstance(is_exclusive, bool):
            del schema[exclusive]
        if is_exclusive is True and limit in schema:
            schema[exclusive] = schema.pop(limit)
    if isinstance(schema.get("required"), list):
        known = schema.get("properties")
        if isinstance(known, dict):
            schema["required"] = [
                name
                for name in schema["required"]
                if isinstance(name, str) and name in known
            ]
    elif "required" in schema:
        del schema["required"]
    return schema
