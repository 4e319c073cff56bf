"""Coercion of tool input to the tool's schema, and validation (R6, R7)."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, assert_never

from runs.engine.parsing.clean import MAX_DIGITS
from runs.engine.parsing.json_schema import SchemaViolation, find_schema_violations
from runs.engine.parsing.reply_text import decode_json
from tools.spec import ToolSpec

_NUMBER = re.compile(
    r"[+-]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,3})?", re.ASCII
)
_INTEGER = re.compile(rf"[+-]?\d{{1,{MAX_DIGITS}}}", re.ASCII)
_MAX_VIOLATIONS = 5
_COMBINATORS = ("anyOf", "oneOf", "allOf")


class CoercedInput(NamedTuple):
    """The input for a tool call, or why there is none."""

    value: Any
    problem: str | None = None


def coerce_tool_input(tool: ToolSpec, given: Any) -> CoercedInput:
    """Return `given` in the shape `tool` takes; None is an omitted input."""
    match tool.takes:
        case "nothing":
            return CoercedInput({})
        case "text":
            return _coerce_text_input(tool, given)
        case "arguments":
            return _coerce_arguments(tool, given)
        case _:
            assert_never(tool.takes)


def _coerce_text_input(tool: ToolSpec, given: Any) -> CoercedInput:
    if given is None:
        return CoercedInput("")
    if not isinstance(given, dict):
        return CoercedInput(given)
    if len(given) > 1:
        return CoercedInput(
            given, f"{tool.name!r} takes one text, not {len(given)} values."
        )
    return CoercedInput(next(iter(given.values()), ""))


def _coerce_arguments(tool: ToolSpec, given: Any) -> CoercedInput:
    schema = tool.args_schema or {}
    arguments = {} if given is None else given
    if isinstance(arguments, str):
        unpacked = _parse_arguments_text(arguments, schema["properties"])
        if unpacked is None:
            return CoercedInput(
                given, _format_wrong_input(tool, "write one JSON object")
            )
        arguments = unpacked
    arguments = coerce_numbers(_drop_unknown_keys(arguments, schema), schema)
    faults = find_schema_violations(arguments, schema)
    if faults:
        return CoercedInput(
            arguments, _format_wrong_input(tool, _format_violations(faults))
        )
    return CoercedInput(arguments)


def _parse_arguments_text(
    text: str, properties: Mapping[str, Any]
) -> dict[str, Any] | None:
    if text.lstrip().startswith("{"):
        try:
            value = decode_json(text)
        except ValueError:
            value = None
        if isinstance(value, dict):
            return value
    return dict.fromkeys(properties, text) if len(properties) == 1 else None


def _drop_unknown_keys(
    arguments: dict[str, Any], schema: Mapping[str, Any]
) -> dict[str, Any]:
    """Drop unknown keys, unless the schema itself covers them."""
    if "additionalProperties" in schema or "patternProperties" in schema:
        return arguments
    return {k: v for k, v in arguments.items() if k in schema["properties"]}


def _format_wrong_input(tool: ToolSpec, what: str) -> str:
    return f"Wrong input for {tool.name!r}: {what}. The tool was not called."


def _format_violations(faults: list[SchemaViolation]) -> str:
    message = "; ".join(str(fault) for fault in faults[:_MAX_VIOLATIONS])
    more = len(faults) - _MAX_VIOLATIONS
    return f"{message}; and {more} more" if more > 0 else message


def coerce_numbers(value: Any, schema: Any) -> Any:
    """Return `value` with numbers that were sent as text converted to numbers."""
    return _coerce_value(value, schema, schema)


def _coerce_value(value: Any, schema: Any, root: Any) -> Any:
    if isinstance(value, str):
        return _coerce_number(value, _collect_types(_expand_schema(schema, root)))
    if isinstance(value, dict):
        fields = _merge_property_schemas(_expand_schema(schema, root))
        return {k: _coerce_value(v, fields.get(k), root) for k, v in value.items()}
    if isinstance(value, list):
        items = [one["items"] for one in _expand_schema(schema, root) if "items" in one]
        inner = items[0] if len(items) == 1 else {"anyOf": items}
        return [_coerce_value(item, inner, root) for item in value]
    return value


def _expand_schema(schema: Any, root: Any) -> list[Mapping[str, Any]]:
    """Return the plain schemas that `schema` stands for or offers as alternatives.

    A schema may refer to itself, so each is visited once.
    """
    plain: list[Mapping[str, Any]] = []
    todo, seen = [schema], set()
    while todo:
        one = todo.pop()
        if not isinstance(one, Mapping) or id(one) in seen:
            continue
        seen.add(id(one))
        lists = [one[key] for key in _COMBINATORS if isinstance(one.get(key), list)]
        options = [option for options in lists for option in options]
        if "$ref" in one:
            options.append(_resolve_reference(one["$ref"], root))
        if "type" in one or "properties" in one or not options:
            plain.append(one)
        todo += options
    return plain


def _resolve_reference(reference: Any, root: Any) -> Any:
    """Return the part of `root` that `#/...` points to, or None."""
    found = root
    for name in str(reference).split("/")[1:]:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _merge_property_schemas(choices: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the schema of each property; if alternatives differ, `anyOf` them."""
    fields: dict[str, Any] = {}
    for choice in choices:
        own = choice.get("properties")
        for name, schema in own.items() if isinstance(own, Mapping) else ():
            known = fields.get(name)
            fields[name] = schema if known is None else {"anyOf": [known, schema]}
    return fields


def _collect_types(choices: list[Mapping[str, Any]]) -> frozenset[str]:
    """Return the declared types; an alternative without any may be a string, too."""
    types: set[str] = set()
    for choice in choices:
        declared = choice.get("type", "string")
        names = declared if isinstance(declared, list) else [declared]
        types |= {name for name in names if isinstance(name, str)}
    return frozenset(types)


def _coerce_number(text: str, types: frozenset[str]) -> Any:
    if "string" in types or not types & {"integer", "number"}:
        return text
    bare = text.strip()
    if _INTEGER.fullmatch(bare):
        return int(bare)
    if not _NUMBER.fullmatch(bare):
        return text
    number = float(bare)
    if number - number != 0:
        return text
    if "number" in types:
        return number
    return int(number) if number.is_integer() else text
