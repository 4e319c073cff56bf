"""Bringing what a model wrote into the shape a tool takes, and checking it (R6, R7)."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, assert_never

from runs.engine.clean import MAX_DIGITS
from runs.engine.json_schema import Fault, faults_of
from runs.engine.reading import decode_whole
from tools.spec import ToolSpec

_NUMBER = re.compile(
    r"[+-]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,3})?", re.ASCII
)
_WHOLE = re.compile(rf"[+-]?\d{{1,{MAX_DIGITS}}}", re.ASCII)
_MOST_FAULTS = 5
_CHOICES = ("anyOf", "oneOf", "allOf")


class Fitted(NamedTuple):
    """The input a tool is called with, or why it cannot be."""

    value: Any
    problem: str | None = None


def fit(tool: ToolSpec, given: Any) -> Fitted:
    """Return `given` in the shape `tool` takes; None is an input that was left out."""
    match tool.takes:
        case "nothing":
            return Fitted({})
        case "text":
            return _fit_text(tool, given)
        case "arguments":
            return _fit_arguments(tool, given)
        case _:
            assert_never(tool.takes)


def _fit_text(tool: ToolSpec, given: Any) -> Fitted:
    if given is None:
        return Fitted("")
    if not isinstance(given, dict):
        return Fitted(given)
    if len(given) > 1:
        return Fitted(given, f"{tool.name!r} takes one text, not {len(given)} values.")
    return Fitted(next(iter(given.values()), ""))


def _fit_arguments(tool: ToolSpec, given: Any) -> Fitted:
    schema = tool.args_schema or {}
    arguments = {} if given is None else given
    if isinstance(arguments, str):
        unpacked = _unpacked(arguments, schema["properties"])
        if unpacked is None:
            return Fitted(given, _wrong(tool, "write one JSON object"))
        arguments = unpacked
    arguments = converted(_known(arguments, schema), schema)
    faults = faults_of(arguments, schema)
    if faults:
        return Fitted(arguments, _wrong(tool, _told(faults)))
    return Fitted(arguments)


def _unpacked(text: str, properties: Mapping[str, Any]) -> dict[str, Any] | None:
    if text.lstrip().startswith("{"):
        try:
            value = decode_whole(text)
        except ValueError:
            value = None
        if isinstance(value, dict):
            return value
    return dict.fromkeys(properties, text) if len(properties) == 1 else None


def _known(arguments: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Drop unknown keys, unless the schema itself says what becomes of them."""
    if "additionalProperties" in schema or "patternProperties" in schema:
        return arguments
    return {k: v for k, v in arguments.items() if k in schema["properties"]}


def _wrong(tool: ToolSpec, what: str) -> str:
    return f"Wrong input for {tool.name!r}: {what}. The tool was not called."


def _told(faults: list[Fault]) -> str:
    told = "; ".join(str(fault) for fault in faults[:_MOST_FAULTS])
    more = len(faults) - _MOST_FAULTS
    return f"{told}; and {more} more" if more > 0 else told


def converted(value: Any, schema: Any) -> Any:
    """Return `value` with numbers that were sent as text turned into numbers."""
    return _converted(value, schema, schema)


def _converted(value: Any, schema: Any, root: Any) -> Any:
    if isinstance(value, str):
        return _as_number(value, _types_of(_choices(schema, root)))
    if isinstance(value, dict):
        fields = _fields_of(_choices(schema, root))
        return {k: _converted(v, fields.get(k), root) for k, v in value.items()}
    if isinstance(value, list):
        items = [one["items"] for one in _choices(schema, root) if "items" in one]
        inner = items[0] if len(items) == 1 else {"anyOf": items}
        return [_converted(item, inner, root) for item in value]
    return value


def _choices(schema: Any, root: Any) -> list[Mapping[str, Any]]:
    """Return the plain schemas that `schema` stands for or leaves the choice between.

    A schema may lead back to itself, so each is looked at once.
    """
    plain: list[Mapping[str, Any]] = []
    todo, seen = [schema], set()
    while todo:
        one = todo.pop()
        if not isinstance(one, Mapping) or id(one) in seen:
            continue
        seen.add(id(one))
        lists = [one[key] for key in _CHOICES if isinstance(one.get(key), list)]
        options = [option for options in lists for option in options]
        if "$ref" in one:
            options.append(_referred(one["$ref"], root))
        if "type" in one or "properties" in one or not options:
            plain.append(one)
        todo += options
    return plain


def _referred(reference: Any, root: Any) -> Any:
    """Return the part of `root` that `#/...` points to; None where there is none."""
    found = root
    for name in str(reference).split("/")[1:]:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _fields_of(choices: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the schema of each property; where choices differ, the choice of them."""
    fields: dict[str, Any] = {}
    for choice in choices:
        own = choice.get("properties")
        for name, schema in own.items() if isinstance(own, Mapping) else ():
            known = fields.get(name)
            fields[name] = schema if known is None else {"anyOf": [known, schema]}
    return fields


def _types_of(choices: list[Mapping[str, Any]]) -> frozenset[str]:
    """Return the declared types; a choice that declares none may be a text, too."""
    types: set[str] = set()
    for choice in choices:
        declared = choice.get("type", "string")
        names = declared if isinstance(declared, list) else [declared]
        types |= {name for name in names if isinstance(name, str)}
    return frozenset(types)


def _as_number(text: str, types: frozenset[str]) -> Any:
    if "string" in types or not types & {"integer", "number"}:
        return text
    bare = text.strip()
    if _WHOLE.fullmatch(bare):
        return int(bare)
    if not _NUMBER.fullmatch(bare):
        return text
    number = float(bare)
    if number - number != 0:
        return text
    if "number" in types:
        return number
    return int(number) if number.is_integer() else text
