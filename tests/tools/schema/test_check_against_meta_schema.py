"""Schemas are judged as the reference implementation judges them."""

import copy
import random

import pytest
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError

from tools.schema.check import META_SCHEMA_VALIDATOR

USUAL = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://a.example/order",
    "$comment": "all of it",
    "$defs": {"rows": {"type": "array", "items": {"$ref": "#/$defs/row"}}, "row": True},
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": ["string", "null"], "pattern": "^[a-z]+$", "minLength": 1},
        "n": {"anyOf": [{"const": 1}, {"enum": [2, "three"]}], "default": 1},
        "rows": {"$ref": "#/$defs/rows", "maxItems": 3, "uniqueItems": True},
        "when": {"type": "string", "format": "date", "examples": ["2026-01-01"]},
        "more": {"prefixItems": [{"not": False}], "contains": {"minimum": 0.5}},
    },
    "patternProperties": {"^x-": {"contentMediaType": "text/plain"}},
    "additionalProperties": False,
    "dependentRequired": {"n": ["id"]},
    "if": {"minProperties": 2},
    "then": {"title": "two", "readOnly": True},
    "unevaluatedProperties": {"$dynamicRef": "#x", "$anchor": "y"},
}
JUNK = (1, -1, 1.5, None, True, "x", "(", [], {}, ["a", "a"], [1], {"a": 1})


def first_place(schema):
    """Return the path to the first error; None for a valid schema."""
    for error in META_SCHEMA_VALIDATOR.iter_errors(schema):
        return error.instance_path
    return None


def expected_place(schema):
    """Return what `first_place` should, by the slow reference implementation."""
    try:
        Draft202012Validator.check_schema(schema, format_checker=FormatChecker([]))
    except SchemaError as error:
        return list(error.absolute_path)
    return None


def places_in(value, path=()):
    """Yield the path to each value."""
    items = (
        value.items() if isinstance(value, dict)
        else enumerate(value) if isinstance(value, list) else ()
    )  # fmt: skip
    for key, one in items:
        yield (*path, key)
        yield from places_in(one, (*path, key))


def replaced(path, junk):
    schema = inside = copy.deepcopy(USUAL)
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = junk
    return schema


def test_a_schema_with_every_sort_of_keyword_is_valid():
    assert first_place(USUAL) is None


def test_errors_are_found_where_the_reference_implementation_finds_them():
    chance = random.Random(7)
    schemas = [
        replaced(path, junk)
        for path in places_in(USUAL)
        for junk in chance.sample(JUNK, 3)
    ]

    places = [(first_place(one), expected_place(one)) for one in schemas]

    assert [pair for pair in places if pair[0] != pair[1]] == []
    assert sum(pair[0] is not None for pair in places) > len(places) / 3


@pytest.mark.parametrize("schema", [[], "x", None, 7])
def test_a_schema_is_an_object(schema):
    assert first_place(schema) is not None
