"""Checking values against schemas, however hostile either is."""

import math
import time

import pytest

from runs.engine.json_schema import faults_of, fits_plainly, flaw_of_schema
from tests.timing import assert_quick, tries

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
    assert fits_plainly(value, PERSON)
    assert faults_of(value, PERSON) == []


@pytest.mark.parametrize(
    ("value", "schema", "told"),
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
def test_a_fault_names_field_and_problem(value, schema, told):
    faults = faults_of(value, schema)

    assert told in "; ".join(map(str, faults))


def test_a_missing_field_is_told_with_its_type():
    fault = faults_of({}, {**PERSON, "required": ["age"]})[0]

    assert str(fault) == "'age' is a required property (expected type: integer)"


def test_a_schema_that_refers_to_itself_without_end_is_a_fault():
    assert "checked" in str(faults_of({}, {"$ref": "#"})[0])


def test_a_pattern_is_only_matched_with_what_it_may_be():
    assert faults_of(5, {"pattern": "a"}) == []
    assert faults_of("b" * 20_000 + "a", {"pattern": "a$"}) == []


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*x", "a" * 501])
@tries(4)
def test_a_pattern_that_may_take_for_ever_is_refused_and_never_run(pattern):
    began = time.monotonic()

    flaw = flaw_of_schema({"properties": {"a": {"pattern": pattern}}})
    faults = faults_of("b" * 5000 + "!", {"pattern": pattern})

    assert "may take for ever" in flaw
    assert faults
    assert_quick(time.monotonic() - began, 1)


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ([], "must be a JSON object"),
        ({"type": 1}, "no valid JSON Schema"),
        ({"allOf": [{"$ref": "file:///etc/passwd"}]}, "leads outside"),
        ({"const": object()}, "no JSON"),
        ({"maximum": math.inf}, "no JSON that can be stored"),
        ({"description": "\0"}, "no JSON that can be stored"),
    ],
)
def test_a_schema_that_cannot_be_used_is_told_why(schema, told):
    assert told in flaw_of_schema(schema)


def test_a_schema_with_its_own_definitions_is_fine():
    schema = {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"type": "string", "pattern": "^a+$"}},
    }

    assert flaw_of_schema(schema) is None
    assert faults_of("aa", schema) == []


def test_many_schemas_do_not_pile_up():
    schemas = [{"const": number} for number in range(2100)]

    assert all(faults_of(number, schema) == [] for number, schema in enumerate(schemas))
    assert faults_of(1, schemas[1]) == []
