"""Local `$ref`s of a JSON Schema, replaced by what they name."""

from typing import Any

MAX_NODES = 2_000
"""Parts of one schema; what is beyond keeps its references."""


def resolve_references(schema: dict[str, Any]) -> dict[str, Any]:
    """Return `schema` without `$defs`; a reference in its own definition stays."""
    return _References(schema).resolve_root()


class _References:
    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self.nodes = 0

    def resolve_root(self) -> dict[str, Any]:
        resolved = self.resolve(self.schema, ())
        return {k: v for k, v in resolved.items() if k not in ("$defs", "definitions")}

    def resolve(self, part: Any, inside: tuple[str, ...]) -> Any:
        """Replace the references in `part`, itself in the definitions `inside`."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            return part
        if isinstance(part, list):
            return [self.resolve(one, inside) for one in part]
        if not isinstance(part, dict):
            return part
        reference = part.get("$ref")
        if isinstance(reference, str) and reference not in inside:
            meant = self.find(reference)
            if meant is not None:
                others = {key: value for key, value in part.items() if key != "$ref"}
                return self.resolve({**meant, **others}, (*inside, reference))
        return {
            key: value
            if key in ("$defs", "definitions", "default", "enum", "const", "examples")
            else self.resolve(value, inside)
            for key, value in part.items()
        }

    def find(self, reference: str) -> dict[str, Any] | None:
        """Return the definition at `#/…`; None for other addresses."""
        start, *path = reference.split("/")
        found: Any = self.schema if start == "#" else None
        for escaped in path:
            name = escaped.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else None
