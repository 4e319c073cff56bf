"""Checking arguments against the schema of a tool, whatever both of them are."""

import re

import pytest

from runs.engine.parsing.json_schema import find_schema_violations
from tests.fakes.listener import listener
from tools.schema.safe_schema import find_first_schema_error, matches_pattern

EXPONENTIAL = [
    "^(?:a?){40}a{40}b$",
    "(a|a)*$",
    "(a|aa)+$",
    "(a+)+$",
    "a*a*a*a*a*a*$",
    ".*.*.*.*.*=x",
    "(a{0,20}){0,20}$",
    "(.|\\s)*x",
]
LONG = "a" * 50_000 + "!"


@pytest.mark.parametrize("pattern", EXPONENTIAL)
def test_no_pattern_takes_for_ever(pattern):
    """With Python's own engine each of these outlives every timeout of this suite."""
    of_value = {"type": "object", "properties": {"a": {"pattern": pattern}}}
    of_names = {"type": "object", "patternProperties": {pattern: {"type": "null"}}}
    others = {**of_names, "additionalProperties": False}
    unevaluated = {**of_names, "unevaluatedProperties": False}

    for schema in (of_value, of_names, others, unevaluated):
        for value in ({"a": LONG}, {LONG: 1}, {"a" * 40: 1}):
            find_schema_violations(value, schema)
            find_first_schema_error(value, schema)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^a+$", "aaa", True),
        ("^a+$", "aab", False),
        ("b", "aba", True),
        (r"^\d{4}-\d{2}$", "2026-01", True),
        (r"\u0041", "A", True),
        ("(?=a)b", "b", None),
        (r"(a)\1", "aa", None),
        ("((a{100}){100}){100}", "a", None),
        ("a" * 2001, "a", None),
    ],
)
def test_a_pattern_is_found_or_not_or_cannot_be_said(pattern, text, found):
    assert matches_pattern(pattern, text) is found


def test_what_is_no_pattern_is_an_error():
    with pytest.raises(re.error):
        matches_pattern("(", "a")


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        ({"required": ["a"]}, {}, "'a' is a required property."),
        ({"properties": {"a": {"type": "integer"}}}, {"a": "x"}, "a: 'x' is not of"),
        ({"properties": {"a": {"pattern": "^b"}}}, {"a": "x"}, "does not match"),
        ({"patternProperties": {"^a": {"type": "null"}}}, {"ab": 1}, "not of type"),
        (
            {"patternProperties": {"^a": {}}, "additionalProperties": False},
            {"b": 1},
            "'b' was unexpected",
        ),
        (
            {
                "patternProperties": {"^a": {}},
                "additionalProperties": {"type": "null"},
            },
            {"b": 1},
            "b: 1 is not of type 'null'",
        ),
        ({"additionalProperties": False}, {"b": 1}, "'b' was unexpected"),
        ({"unevaluatedProperties": False}, {"b": 1}, "b"),
        ({"$ref": "#/nope"}, {}, "cannot be checked"),
        ({"$ref": "#"}, {}, "cannot be checked"),
        ({"$dynamicRef": "#x"}, {}, "cannot be checked"),
        ({"type": 5}, {}, "cannot be checked"),
        ({"type": "text"}, {}, "cannot be checked"),
        ({"properties": 5}, {"a": 1}, "cannot be checked"),
        ({"properties": {"a": {"pattern": "("}}}, {"a": "b"}, "cannot be checked"),
        ({"properties": {"a": {"multipleOf": 0}}}, {"a": 1}, "cannot be checked"),
    ],
)
def test_what_is_wrong_is_a_sentence(schema, value, why):
    assert why in (find_first_schema_error(value, schema) or "")


def test_what_a_pattern_stands_for_is_not_additional():
    schema = {"patternProperties": {"^a": {}}, "additionalProperties": False}

    assert find_first_schema_error({"ab": 1}, schema) is None


def test_a_reference_to_elsewhere_is_not_fetched():
    with listener() as found:
        schema = {"$ref": f"http://127.0.0.1:{found.port}/schema.json"}

        assert "cannot be checked" in (find_first_schema_error({}, schema) or "")
        assert find_schema_violations({}, schema)

    assert found.knocks == 0


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
@pytest.mark.slow
def test_references_that_double_at_each_step_end(keyword):
    """Thirty such steps would take the validator a day."""
    parts = {"a0": {"type": "string"}}
    for n in range(1, 31):
        parts[f"a{n}"] = {"allOf": [{keyword: f"#/$defs/a{n - 1}"}] * 2}
    schema = {"properties": {"x": {"$ref": "#/$defs/a30"}}, "$defs": parts}

    assert "lead to too many" in (find_first_schema_error({"x": "y"}, schema) or "")
    assert "lead to too many" in str(find_schema_violations({"x": "y"}, schema)[0])


def test_many_values_may_share_a_reference():
    schema = {
        "properties": {"x": {"items": {"$ref": "#/$defs/a"}}},
        "$defs": {"a": {"type": "integer"}},
    }

    assert find_first_schema_error({"x": [1] * 20_000}, schema) is None
    assert find_schema_violations({"x": [1] * 20_000}, schema) == []


@pytest.mark.parametrize(
    ("items", "is_unique"),
    [
        ([1, True, "1", [1], {"a": 1}, None, 0, False, ""], True),
        ([1, 1.0], False),
        ([{"a": [1, {"b": 2}], "c": 3}, {"c": 3.0, "a": [1, {"b": 2}]}], False),
        ([[True], [1]], True),
        ([["a", "b"], ["b", "a"]], True),
    ],
)
def test_items_are_compared_as_json_schema_does(items, is_unique):
    error = find_first_schema_error(items, {"uniqueItems": True})

    assert (error is None) == is_unique
    assert (error or "has non-unique elements.").endswith("has non-unique elements.")
    assert find_first_schema_error(items, {"uniqueItems": False}) is None


def test_many_objects_are_compared_in_linear_time():
    """Comparing each with each took 16 s for a tenth of these."""
    items = [{"id": n, "tags": [str(n), "same"]} for n in range(30_000)]

    assert find_first_schema_error(items, {"uniqueItems": True}) is None
    assert "non-unique" in find_first_schema_error(
        [*items, items[0]], {"uniqueItems": True}
    )


def test_allowed_values_are_read_once():
    """Comparing each with each took 33 s."""
    schema = {"items": {"enum": [{"n": n} for n in range(5_000)]}}

    assert find_first_schema_error([{"n": 4_999.0}] * 5_000, schema) is None
    assert "is not one of" in (find_first_schema_error([{"n": -1}], schema) or "")
    assert "is not one of" in (
        find_first_schema_error([True], {"items": {"enum": [1]}}) or ""
    )


def test_an_error_of_a_huge_list_of_allowed_values_is_short():
    schema = {"items": {"enum": [{"n": n} for n in range(5_000)]}}

    error = find_first_schema_error([{"n": -1}] * 2_000, schema) or ""
    assert "is not one of" in error
    assert len(error) < 2_000
