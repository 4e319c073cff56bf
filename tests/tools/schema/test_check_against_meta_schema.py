"""The meta-schema in one file says what the draft's own eight say."""

import copy
import random

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from tools.metaschema import META_SCHEMA, check_is_schema

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


def said_by(check, schema):
    """Return place and words of the first fault; None for a schema."""
    try:
        check(schema)
    except SchemaError as error:
        return list(error.absolute_path), error.message
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


def test_a_schema_with_every_sort_of_keyword_is_one():
    assert said_by(check_is_schema, USUAL) is None


def test_whatever_stands_anywhere_is_judged_as_the_draft_does():
    chance = random.Random(7)
    said = [
        (check_is_schema, Draft202012Validator.check_schema, replaced(path, junk))
        for path in places_in(USUAL)
        for junk in chance.sample(JUNK, 3)
    ]

    faults = [(said_by(ours, one), said_by(theirs, one)) for ours, theirs, one in said]

    assert [pair for pair in faults if pair[0] != pair[1]] == []
    assert sum(pair[0] is not None for pair in faults) > len(faults) / 3


@pytest.mark.parametrize("schema", [[], "x", None, 7])
def test_what_is_no_object_is_no_schema(schema):
    assert said_by(check_is_schema, schema) is not None


def test_it_knows_every_keyword_of_the_draft():
    assert {"$ref", "properties", "unevaluatedItems", "minimum", "title"} < set(
        META_SCHEMA["properties"]
    )
    assert {"contentSchema", "format", "$defs", "dependencies"} < set(
        META_SCHEMA["properties"]
    )
