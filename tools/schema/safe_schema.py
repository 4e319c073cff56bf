"""A JSON Schema validator that always ends soon, whatever the schema and the value.

Python's regular expressions can take exponential time and hold the GIL meanwhile, so
patterns are matched by the linear-time engine of pydantic. It supports neither
look-around nor back-references: patterns with those are not checked. Chained references
can double the work with each line of a schema, so their number is limited. Items are
compared with each other, and with long lists of allowed values, in linear time.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import UnknownType, best_match
from jsonschema.validators import extend
from pydantic_core import SchemaError, SchemaValidator, core_schema
from pydantic_core import ValidationError as NoMatch
from referencing import Registry
from referencing.exceptions import Unresolvable

MAX_PATTERN = 2_000
SHOWN_VALUES = 50
"""Allowed values that an error lists."""
MAX_REFERENCES = 50_000
"""Followed while one value is checked; that many take a second or two."""
VALIDATION_CRASHES = (
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
    *(re.error, Unresolvable, UnknownType),
)
"""What the validator raises on invalid schemas and absurd values."""


class CheckState(threading.local):
    """What the check of this thread has done."""

    references = 0
    """Followed so far."""
    allowed: dict[int, frozenset[str]]
    """The texts of lists of allowed values, by the identity of the list."""


_state = CheckState()


def find_schema_errors(validator: Any, value: Any) -> list[ValidationError]:
    """Return what is wrong with `value`; raise `ValueError` if that takes too long."""
    _state.references, _state.allowed = 0, {}
    return list(validator.iter_errors(value))


def limit_references(keyword: str) -> Callable[..., Iterator[ValidationError]]:
    """Return what jsonschema does for a keyword, so many times a check."""

    def check(
        validator: Any, target: str, instance: Any, schema: Any
    ) -> Iterator[ValidationError]:
        _state.references += 1
        if _state.references > MAX_REFERENCES:
            raise ValueError("its references lead to too many others")
        ours = Draft202012Validator.VALIDATORS[keyword]
        yield from ours(validator, target, instance, schema) or ()

    return check


@lru_cache(maxsize=1024)
def compile_safe_pattern(pattern: str) -> SchemaValidator | None:
    """Return what matches `pattern`, None if it cannot be matched in linear time.

    Raise `re.error` if it is not a pattern at all.
    """
    if len(pattern) > MAX_PATTERN:
        return None
    try:
        return SchemaValidator(
            core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")
        )
    except (SchemaError, ValueError):
        re.compile(pattern)
        return None


def matches_pattern(pattern: str, text: str) -> bool | None:
    """Whether `pattern` is found in `text`; None if that is unknown."""
    matcher = compile_safe_pattern(pattern)
    if matcher is None:
        return None
    try:
        matcher.validate_python(text)
    except NoMatch:
        return False
    return True


def check_pattern(
    validator: Any, pattern: str, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """Yield an error if a text surely does not match."""
    if isinstance(instance, str) and matches_pattern(pattern, instance) is False:
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def check_pattern_properties(
    validator: Any, patterns: dict[str, Any], instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """Yield the errors of properties whose names match."""
    if not isinstance(instance, dict):
        return
    for pattern, part in patterns.items():
        for name, value in instance.items():
            if matches_pattern(pattern, name):
                yield from validator.descend(
                    value, part, path=name, schema_path=pattern
                )


def check_additional(
    validator: Any, allowed: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """Yield the errors of properties that neither a name nor a pattern stands for."""
    if "patternProperties" not in schema:
        ours = Draft202012Validator.VALIDATORS["additionalProperties"]
        yield from ours(validator, allowed, instance, schema) or ()
        return
    if not isinstance(instance, dict):
        return
    for name in find_additional_names(instance, schema):
        if isinstance(allowed, dict):
            yield from validator.descend(instance[name], allowed, path=name)
        elif not allowed:
            yield ValidationError(
                f"Additional properties are not allowed ({name!r} was unexpected)"
            )


def find_additional_names(instance: dict[str, Any], schema: Any) -> list[str]:
    """Return the names that no property and no pattern stands for."""
    known = schema.get("properties", {})
    patterns = schema["patternProperties"]
    return [
        name
        for name in instance
        if name not in known
        and all(matches_pattern(one, name) is False for one in patterns)
    ]


def check_unevaluated(
    validator: Any, allowed: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """Yield what jsonschema yields, unless it would match patterns by itself."""
    if not has_patterns(validator.schema):
        ours = Draft202012Validator.VALIDATORS["unevaluatedProperties"]
        yield from ours(validator, allowed, instance, schema) or ()


def has_patterns(part: Any) -> bool:
    """Whether patterns for names stand anywhere in a schema."""
    if isinstance(part, dict):
        return "patternProperties" in part or any(map(has_patterns, part.values()))
    return isinstance(part, list) and any(map(has_patterns, part))


def check_enum(
    validator: Any, allowed: list[Any], instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """Yield an error for a value that is not allowed; each list is read once."""
    texts = _state.allowed.get(id(allowed))
    if texts is None:
        texts = frozenset(map(format_comparable, allowed))
        _state.allowed[id(allowed)] = texts
    if format_comparable(instance) not in texts:
        yield ValidationError(f"{instance!r} is not one of {format_allowed(allowed)}")


def format_allowed(allowed: list[Any]) -> str:
    """Return the first values: each error repeats them."""
    if len(allowed) <= SHOWN_VALUES:
        return repr(allowed)
    shown = ", ".join(map(repr, allowed[:SHOWN_VALUES]))
    return f"[{shown}, … {len(allowed) - SHOWN_VALUES} more]"


def check_unique(
    validator: Any, is_unique: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """Yield an error if two items are equal, in linear time."""
    if not is_unique or not isinstance(instance, list):
        return
    if len(set(map(format_comparable, instance))) < len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


def format_comparable(value: Any) -> str:
    """Return the same text for values that are equal in JSON Schema."""
    return json.dumps(normalize_numbers(value), sort_keys=True)


def normalize_numbers(value: Any) -> Any:
    """Return a JSON value with 1 for 1.0, which are equal in JSON Schema."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: normalize_numbers(part) for name, part in value.items()}
    if isinstance(value, list):
        return [normalize_numbers(part) for part in value]
    return value


SafeValidator = extend(  # type: ignore[no-untyped-call]  # jsonschema leaves it untyped
    Draft202012Validator,
    {
        "$ref": limit_references("$ref"),
        "$dynamicRef": limit_references("$dynamicRef"),
        "enum": check_enum,
        "uniqueItems": check_unique,
        "pattern": check_pattern,
        "patternProperties": check_pattern_properties,
        "additionalProperties": check_additional,
        "unevaluatedProperties": check_unevaluated,
    },
)


def find_first_schema_error(value: Any, schema: dict[str, Any]) -> str | None:
    """Return what is wrong with `value` in a sentence, or None if it fits.

    No reference is fetched, and a schema that is none is a sentence too.
    """
    try:
        validator = SafeValidator(schema, registry=Registry())
        error = best_match(find_schema_errors(validator, value))
    except (RecursionError, *VALIDATION_CRASHES) as broken:
        why = str(broken) or type(broken).__name__
        return f"It cannot be checked against the schema ({why[:300]})."
    if error is None:
        return None
    place = ".".join(map(str, error.absolute_path))
    return f"{place}: {error.message}." if place else f"{error.message}."
