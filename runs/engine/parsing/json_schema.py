"""Checking a value against a JSON Schema, safely whatever schema and value are.

Schemas come from people and from tool servers, values from models: no reference is ever
fetched, no pattern may take for ever, no depth or number may break the check.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator, SchemaError, ValidationError
from referencing import Registry

from tools.safe_schema import BREAKS, SafeValidator, errors_in
from tools.storable import is_storable

_NO_JSON = "The schema is no JSON that can be stored."
_LONGEST_PATTERN = 500
_NESTED_REPEAT = re.compile(r"[*+}]\??\)[*+{]|\|[^()]*\)[*+{]")


class Fault(NamedTuple):
    """One thing wrong with a value: where, what, and what was expected."""

    field: str
    problem: str

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}" if self.field else self.problem


def faults_of(value: Any, schema: Mapping[str, Any]) -> list[Fault]:
    """Return what is wrong with `value`; an empty list when it fits."""
    try:
        if fits_plainly(value, schema):
            return []
        return [_fault(error) for error in errors_in(_validator(schema), value)]
    except (RecursionError, *BREAKS) as error:
        return [Fault("", f"it cannot be checked against the schema ({error})")]


_PLAIN_KEYS = frozenset(
    ("type", "properties", "required", "items", "additionalProperties")
    + ("title", "description", "default", "$schema")
)
_PLAIN_TYPES: dict[Any, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "object": (dict,),
    "array": (list,),
}


def fits_plainly(value: Any, schema: Any) -> bool:
    """Say whether `value` surely fits; False means that the validator has to look.

    Most schemas only name types, and this is thirty times faster than the validator.
    """
    if type(schema) is not dict or not schema.keys() <= _PLAIN_KEYS:
        return False
    declared = schema.get("type")
    if type(declared) is not str or type(value) not in _PLAIN_TYPES.get(declared, ()):
        return False
    if type(value) is dict:
        return _has_plain_fields(value, schema)
    if type(value) is list:
        items = schema.get("items", True)
        return items is True or all(fits_plainly(item, items) for item in value)
    return True


def _has_plain_fields(value: dict[str, Any], schema: dict[str, Any]) -> bool:
    fields, required = schema.get("properties", {}), schema.get("required", [])
    if type(fields) is not dict or type(required) is not list:
        return False
    if schema.get("additionalProperties", True) is not True and value.keys() - fields:
        return False
    return all(name in value for name in required) and all(
        fits_plainly(item, fields[name])
        for name, item in value.items()
        if name in fields
    )


def flaw_of_schema(schema: Any) -> str | None:
    """Return why `schema` cannot be used, or None."""
    if not isinstance(schema, Mapping):
        return "The schema must be a JSON object."
    try:
        return _flaw_of_text(json.dumps(schema, sort_keys=True))
    except (RecursionError, *BREAKS):
        return _NO_JSON


@lru_cache(maxsize=1024)
def _flaw_of_text(text: str) -> str | None:
    schema = json.loads(text)
    if not is_storable(schema):
        return _NO_JSON
    for key, value in _pairs(schema):
        if key == "$ref" and isinstance(value, str) and not value.startswith("#"):
            return f"The reference {value!r} leads outside the schema."
        if key == "pattern" and isinstance(value, str) and _is_risky(value):
            return f"The pattern {value[:60]!r} may take for ever."
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"This is no valid JSON Schema: {error.message}."
    return None


def _pairs(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key, item
            yield from _pairs(item)
    elif isinstance(value, list):
        for item in value:
            yield from _pairs(item)


def _is_risky(pattern: str) -> bool:
    return len(pattern) > _LONGEST_PATTERN or bool(_NESTED_REPEAT.search(pattern))


_MADE: dict[int, tuple[Mapping[str, Any], Any]] = {}
_MOST_MADE = 2048


def _validator(schema: Mapping[str, Any]) -> Any:
    made = _MADE.get(id(schema))
    if made is not None and made[0] is schema:
        return made[1]
    validator = SafeValidator(schema, registry=Registry())
    if len(_MADE) >= _MOST_MADE:
        _MADE.clear()
    _MADE[id(schema)] = (schema, validator)
    return validator


def _fault(error: ValidationError) -> Fault:
    field = ".".join(str(part) for part in error.absolute_path)
    problem = error.message
    if len(problem) > 300:
        problem = f"{problem[:300]}…"
    if error.validator == "required":
        problem = f"{problem}{_expected_of_missing(error)}"
    return Fault(field, problem)


def _expected_of_missing(error: ValidationError) -> str:
    name = error.message.split("'")[1] if "'" in error.message else ""
    schema = error.schema if isinstance(error.schema, Mapping) else {}
    declared = schema.get("properties", {}).get(name, {})
    kind = declared.get("type") if isinstance(declared, Mapping) else None
    return f" (expected type: {kind})" if kind else ""
