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
ALIASES = {
    **{"List": "list", "Dict": "dict", "Any": "object"},
    **dict.fromkeys(("Sequence", "Iterable", "Collection", "MutableSequence"), "list"),
    **dict.fromkeys(("Mapping", "MutableMapping"), "dict"),
}
"""Other names of types; the values are lists and dictionaries."""

TYPE_MODULES = ("typing", "typing_extensions", "collections.abc", "datetime")
DATE_TYPES = ("date", "datetime", "time")
NULL = {"type": "null"}


class UnsupportedAnnotation(ValueError):
    """The annotation has no JSON Schema here."""


class DateAnnotation(UnsupportedAnnotation):
    """The annotation has a date or a time, which arrives as a text."""

    def __init__(self, type_name: str) -> None:
        super().__init__(type_name)
        self.type_name = type_name


def build_annotation_schema(annotation: ast.expr) -> dict[str, Any]:
    """Return the schema; raise `UnsupportedAnnotation`."""
    match annotation:
        case ast.Constant(value=None):
            return dict(NULL)
        case ast.Name() | ast.Attribute():
            return _build_named_schema(_read_type_name(annotation))
        case ast.BinOp(op=ast.BitOr()):
            return _join_schemas(_split_union(annotation))
        case ast.Subscript(value=generic, slice=inner):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return _build_generic_schema(_read_type_name(generic), parts)
    raise UnsupportedAnnotation


def _read_type_name(annotation: ast.expr) -> str:
    """Return the name of a type without its module."""
    match annotation:
        case ast.Name(id=name):
            return ALIASES.get(name, name)
        case ast.Attribute(value=module, attr=name) if _is_type_module(module):
            return ALIASES.get(name, name)
    raise UnsupportedAnnotation


def _is_type_module(expression: ast.expr) -> bool:
    match expression:
        case ast.Name(id=name):
            return name in TYPE_MODULES
        case ast.Attribute(value=ast.Name(id=package), attr=name):
            return f"{package}.{name}" in TYPE_MODULES
    return False


def _build_named_schema(name: str) -> dict[str, Any]:
    if name in DATE_TYPES:
        raise DateAnnotation(name)
    if name not in NAMED_TYPES:
        raise UnsupportedAnnotation
    return dict(NAMED_TYPES[name])


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
        case "Annotated", [kind, _, *_]:
            return build_annotation_schema(kind) | _read_description(parts[1:])
    raise UnsupportedAnnotation


def _read_description(notes: list[ast.expr]) -> dict[str, Any]:
    """Return the first text of `Annotated` as the description; others are ignored."""
    for note in notes:
        match note:
            case ast.Constant(value=str() as text) if is_storable(text):
                return {"description": text}
    return {}


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
    kinds = {type(one) for one in values if one is not None}
    if len(kinds) != 1:
        return {"enum": values}
    kind = "string" if kinds == {str} else "integer"
    return {"type": [kind, "null"] if None in values else kind, "enum": values}


def _read_choice(part: ast.expr) -> str | int | None:
    match part:
        case ast.Constant(value=None):
            return None
        case ast.Constant(value=str() as text) if is_storable(text):
            return text
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
            return -value
    raise UnsupportedAnnotation
