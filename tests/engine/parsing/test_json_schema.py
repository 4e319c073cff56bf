"""Checking values against schemas, however hostile either is."""

import math

import pytest

from runs.engine.parsing.json_schema import (
    find_schema_problem,
    find_schema_violations,
    fits_simple_schema,
)

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name"],
}


@pytest.mark.parametrize(
    "value",
    [{"name": "Bo"}, {"name": "Bo", "age": 4, "tags": ["a"]}, {"name": "", "x": 1}],
)
def test_a_plain_value_fits_without_the_validator(value):
    assert fits_simple_schema(value, PERSON)
    assert find_schema_violations(value, PERSON) == []


@pytest.mark.parametrize(
    ("value", "schema", "message"),
    [
        pytest.param({}, PERSON, "'name' is a required property", id="missing"),
        pytest.param({"name": 1}, PERSON, "name: 1 is not of type 'string'", id="type"),
        pytest.param(
            {"name": "a", "tags": ["b", 2]}, PERSON, "tags.1: 2 is not", id="inside"
        ),
        pytest.param(5, {"minimum": 6}, "less than the minimum", id="keyword"),
        pytest.param({"a": 1}, {"required": ["b"]}, "'b' is a required", id="no type"),
        pytest.param("x" * 900, {"enum": ["a"]}, "…", id="long values are shortened"),
        pytest.param(
            {"x": 1}, {**PERSON, "additionalProperties": False}, "x", id="extra"
        ),
        pytest.param(
            1, {"type": ["string", "null"]}, "not of type", id="several types"
        ),
        pytest.param({"a": 1}, False, "False schema", id="nothing is allowed"),
        pytest.param(
            [1], {"type": "array", "items": False}, "at most 0", id="no items"
        ),
        pytest.param(
            1, {"$ref": "http://127.0.0.1/x"}, "checked", id="reference outside"
        ),
        pytest.param("a", {"pattern": "("}, "checked", id="broken pattern"),
        pytest.param("ab", {"pattern": "^b"}, "does not match", id="pattern"),
        pytest.param({}, {"type": "object", "required": 5}, "", id="broken required"),
        pytest.param(
            {}, {"type": "object", "required": [[]]}, "checked", id="required of lists"
        ),
        pytest.param({}, {"type": "object", "properties": []}, "", id="broken fields"),
    ],
)
def test_a_violation_names_field_and_problem(value, schema, message):
    faults = find_schema_violations(value, schema)

    assert message in "; ".join(map(str, faults))


def test_a_missing_field_is_reported_with_its_type():
    fault = find_schema_violations({}, {**PERSON, "required": ["age"]})[0]

    assert str(fault) == "'age' is a required property (expected type: integer)"


def test_an_endlessly_recursive_schema_is_a_violation():
    assert "checked" in str(find_schema_violations({}, {"$ref": "#"})[0])


def test_a_pattern_is_only_matched_with_what_it_may_be():
    assert find_schema_violations(5, {"pattern": "a"}) == []
    assert find_schema_violations("b" * 20_000 + "a", {"pattern": "a$"}) == []


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*x", "a" * 501])
def test_a_pattern_that_may_take_forever_is_refused_and_never_run(pattern):

    flaw = find_schema_problem({"properties": {"a": {"pattern": pattern}}})
    faults = find_schema_violations("b" * 5000 + "!", {"pattern": pattern})

    assert "may run forever" in flaw
    assert faults


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ([], "must be a JSON object"),
        ({"type": 1}, "not a valid JSON Schema"),
        ({"allOf": [{"$ref": "file:///etc/passwd"}]}, "leads outside"),
        ({"const": object()}, "not JSON"),
        ({"maximum": math.inf}, "not JSON that can be stored"),
        ({"description": "\0"}, "not JSON that can be stored"),
    ],
)
def test_an_unusable_schema_is_refused_with_the_reason(schema, message):
    assert message in find_schema_problem(schema)


def test_a_schema_with_its_own_definitions_is_fine():
    schema = {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"type": "string", "pattern": "^a+$"}},
    }

    assert find_schema_problem(schema) is None
    assert find_schema_violations("aa", schema) == []


def test_the_validator_cache_is_bounded():
    schemas = [{"const": number} for number in range(2100)]

    assert all(
        find_schema_violations(number, schema) == []
        for number, schema in enumerate(schemas)
    )
    assert find_schema_violations(1, schemas[1]) == []
