"""Validation of untrusted values against untrusted JSON Schemas.

Schemas come from people and tool servers, values from models: references are never
fetched, patterns cannot run forever, and no depth or number breaks the check.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator, SchemaError, ValidationError
from referencing import Registry

from tools.schema.safe_schema import (
    VALIDATION_CRASHES,
    SafeValidator,
    find_schema_errors,
)
from tools.text.storable import is_storable

_NOT_STORABLE_JSON = "The schema is not JSON that can be stored."
_MAX_PATTERN_LENGTH = 500
_NESTED_REPEAT = re.compile(r"[*+}]\??\)[*+{]|\|[^()]*\)[*+{]")


class SchemaViolation(NamedTuple):
    """One violation: where, what, and what was expected."""

    field: str
    problem: str

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}" if self.field else self.problem


def find_schema_violations(
    value: Any, schema: Mapping[str, Any]
) -> list[SchemaViolation]:
    """Return what is wrong with `value`; an empty list if it is valid."""
    try:
        if fits_simple_schema(value, schema):
            return []
        return [
            _build_violation(error)
            for error in find_schema_errors(_get_validator(schema), value)
        ]
    except (RecursionError, *VALIDATION_CRASHES) as error:
        return [
            SchemaViolation("", f"it cannot be checked against the schema ({error})")
        ]


_SIMPLE_KEYS = frozenset(
    ("type", "properties", "required", "items", "additionalProperties")
    + ("title", "description", "default", "$schema")
)
_SIMPLE_TYPES: dict[Any, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "object": (dict,),
    "array": (list,),
}


def fits_simple_schema(value: Any, schema: Any) -> bool:
    """Whether `value` surely is valid; False means that the validator has to decide.

    Most schemas only name types, and this is thirty times faster than the validator.
    """
    if type(schema) is not dict or not schema.keys() <= _SIMPLE_KEYS:
        return False
    declared = schema.get("type")
    if type(declared) is not str or type(value) not in _SIMPLE_TYPES.get(declared, ()):
        return False
    if type(value) is dict:
        return _has_simple_fields(value, schema)
    if type(value) is list:
        items = schema.get("items", True)
        return items is True or all(fits_simple_schema(item, items) for item in value)
    return True


def _has_simple_fields(value: dict[str, Any], schema: dict[str, Any]) -> bool:
    fields, required = schema.get("properties", {}), schema.get("required", [])
    if type(fields) is not dict or type(required) is not list:
        return False
    if schema.get("additionalProperties", True) is not True and value.keys() - fields:
        return False
    return all(name in value for name in required) and all(
        fits_simple_schema(item, fields[name])
        for name, item in value.items()
        if name in fields
    )


def find_schema_problem(schema: Any) -> str | None:
    """Return why `schema` cannot be used, or None."""
    if not isinstance(schema, Mapping):
        return "The schema must be a JSON object."
    try:
        return _find_problem_in_text(json.dumps(schema, sort_keys=True))
    except (RecursionError, *VALIDATION_CRASHES):
        return _NOT_STORABLE_JSON


@lru_cache(maxsize=1024)
def _find_problem_in_text(text: str) -> str | None:
    schema = json.loads(text)
    if not is_storable(schema):
        return _NOT_STORABLE_JSON
    for key, value in _iter_pairs(schema):
        if key == "$ref" and isinstance(value, str) and not value.startswith("#"):
            return f"The reference {value!r} leads outside the schema."
        if key == "pattern" and isinstance(value, str) and _is_risky(value):
            return f"The pattern {value[:60]!r} may run forever."
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"This is not a valid JSON Schema: {error.message}."
    return None


def _iter_pairs(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key, item
            yield from _iter_pairs(item)
    elif isinstance(value, list):
        for item in value:
            yield from _iter_pairs(item)


def _is_risky(pattern: str) -> bool:
    return len(pattern) > _MAX_PATTERN_LENGTH or bool(_NESTED_REPEAT.search(pattern))


_VALIDATORS: dict[int, tuple[Mapping[str, Any], Any]] = {}
_MAX_VALIDATORS = 2048


def _get_validator(schema: Mapping[str, Any]) -> Any:
    made = _VALIDATORS.get(id(schema))
    if made is not None and made[0] is schema:
        return made[1]
    validator = SafeValidator(schema, registry=Registry())
    if len(_VALIDATORS) >= _MAX_VALIDATORS:
        _VALIDATORS.clear()
    _VALIDATORS[id(schema)] = (schema, validator)
    return validator


def _build_violation(error: ValidationError) -> SchemaViolation:
    field = ".".join(str(part) for part in error.absolute_path)
    problem = error.message
    if len(problem) > 300:
        problem = f"{problem[:300]}…"
    if error.validator == "required":
        problem = f"{problem}{_format_expected_type(error)}"
    return SchemaViolation(field, problem)


def _format_expected_type(error: ValidationError) -> str:
    name = error.message.split("'")[1] if "'" in error.message else ""
    schema = error.schema if isinstance(error.schema, Mapping) else {}
    declared = schema.get("properties", {}).get(name, {})
    kind = declared.get("type") if isinstance(declared, Mapping) else None
    return f" (expected type: {kind})" if kind else ""
