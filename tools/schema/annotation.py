"""The JSON Schema of a type annotation in source text, of which nothing is run."""

import ast
from typing import Any

from tools.text.storable import is_storable

NAMED_TYPES: dict[str, dict[str, Any]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "list": {"type": "array", "items": {}},
    "dict": {"type": "object", "additionalProperties": True},
    "object": {},
}
ALIASES = {"List": "list", "Dict": "dict", "Any": "object"}
NULL = {"type": "null"}


class UnsupportedAnnotation(ValueError):
    """The annotation has no JSON Schema here."""


def build_annotation_schema(annotation: ast.expr) -> dict[str, Any]:
    """Return the schema; raise `UnsupportedAnnotation`."""
    match annotation:
        case ast.Constant(value=None):
            return dict(NULL)
        case ast.Name(id=name):
            found = NAMED_TYPES.get(ALIASES.get(name, name))
            if found is not None:
                return dict(found)
        case ast.BinOp(op=ast.BitOr()):
            return _join_schemas(_split_union(annotation))
        case ast.Subscript(value=ast.Name(id=name), slice=inner):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return _build_generic_schema(ALIASES.get(name, name), parts)
    raise UnsupportedAnnotation


def _split_union(annotation: ast.expr) -> list[ast.expr]:
    """Return the types of `int | str | None`, which the syntax tree nests."""
    parts: list[ast.expr] = []
    while isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        parts.append(annotation.right)
        annotation = annotation.left
    return [annotation, *reversed(parts)]


def _build_generic_schema(name: str, parts: list[ast.expr]) -> dict[str, Any]:
    match name, parts:
        case "list", [item]:
            return {"type": "array", "items": build_annotation_schema(item)}
        case "dict", [ast.Name(id="str"), value]:
            inner = build_annotation_schema(value)
            return {"type": "object", "additionalProperties": inner or True}
        case "Optional", [_]:
            return _join_schemas([*parts, ast.Constant(None)])
        case "Union", [_, *_]:
            return _join_schemas(parts)
        case "Literal", [_, *_]:
            return _build_choice_schema(parts)
    raise UnsupportedAnnotation


def _join_schemas(parts: list[ast.expr]) -> dict[str, Any]:
    """Return the schema of any of the types, each once."""
    found: list[dict[str, Any]] = []
    for part in parts:
        schema = build_annotation_schema(part)
        for one in schema.get("anyOf", [schema]):
            if one not in found:
                found.append(one)
    return found[0] if len(found) == 1 else {"anyOf": found}


def _build_choice_schema(parts: list[ast.expr]) -> dict[str, Any]:
    values = [_read_choice(one) for one in parts]
    kinds = {type(one) for one in values}
    if len(kinds) > 1:
        return {"enum": values}
    return {"type": "string" if kinds == {str} else "integer", "enum": values}


def _read_choice(part: ast.expr) -> str | int:
    match part:
        case ast.Constant(value=str() as text) if is_storable(text):
            return text
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
            return -value
    raise UnsupportedAnnotation
