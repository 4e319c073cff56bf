"""Tool inputs: shapes, conversions, and what the model is told."""

import pytest

from runs.engine.parsing.arguments import coerce_numbers, coerce_tool_input
from tests.engine.make import make_tool

INTEGER, NUMBER = {"type": "integer"}, {"type": "number"}
OPTIONAL = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
EITHER = {"oneOf": [{"type": "integer"}, {"type": "string"}]}
UNKNOWN = {"anyOf": [{"type": "integer"}, {"const": "x"}, True]}


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("40", INTEGER, 40),
        (" -7 ", INTEGER, -7),
        ("4.0", INTEGER, 4),
        ("4.5", INTEGER, "4.5"),
        ("4.0", NUMBER, 4.0),
        ("1e3", NUMBER, 1000.0),
        (".5", NUMBER, 0.5),
        ("1e999", NUMBER, "1e999"),
        ("nan", NUMBER, "nan"),
        ("٣", INTEGER, "٣"),
        ("9" * 5000, INTEGER, "9" * 5000),
        ("5", OPTIONAL, 5),
        ("5", EITHER, "5"),
        ("5", UNKNOWN, "5"),
        ("5", {"type": ["integer", "null"]}, 5),
        ("5", {}, "5"),
        ("5", True, "5"),
    ],
)
def test_numbers_sent_as_text_become_the_declared_number(text, schema, value):
    got = coerce_numbers(text, schema)

    assert (got, type(got)) == (value, type(value))


def test_numbers_deep_inside_are_converted_too():
    schema = {"properties": {"rows": {"items": {"properties": {"n": INTEGER}}}}}

    assert coerce_numbers({"rows": [{"n": "1", "m": "2"}]}, schema) == {
        "rows": [{"n": 1, "m": "2"}]
    }


def test_numbers_are_converted_behind_references_and_choices():
    point = {"properties": {"x": NUMBER, "on": {"$ref": "#/$defs/Point"}}}
    line = {"properties": {"x": {"type": "string"}, "n": INTEGER}}
    schema = {
        "properties": {
            "point": {"$ref": "#/$defs/Point"},
            "shape": {"anyOf": [point, line]},
            "counts": {
                "anyOf": [{"type": "array", "items": INTEGER}, {"type": "null"}]
            },
        },
        "$defs": {"Point": point},
    }
    given = {
        "point": {"x": "1.5", "on": {"x": "2.5"}},
        "shape": {"x": "1", "n": "3"},
        "counts": ["4"],
    }

    assert coerce_numbers(given, schema) == {
        "point": {"x": 1.5, "on": {"x": 2.5}},
        "shape": {"x": "1", "n": 3},
        "counts": [4],
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/nowhere/at/all"},
        {"$ref": "#/x", "x": {"type": 5, "anyOf": 5, "properties": 5, "items": 5}},
        {"$ref": "#/x", "x": {"anyOf": [{"$ref": "#/x"}, {"$ref": "#"}]}},
    ],
    ids=["itself", "nowhere", "no schema", "a circle"],
)
@pytest.mark.parametrize("given", ["1", {"a": "1"}, ["1"]], ids=str)
def test_a_reference_that_says_nothing_changes_nothing(schema, given):
    assert coerce_numbers(given, schema) == given


@pytest.mark.parametrize(
    "extra", [{"additionalProperties": True}, {"patternProperties": {}}]
)
def test_a_schema_that_says_so_keeps_unknown_keys(extra):
    schema = {"type": "object", "properties": {"a": INTEGER}, **extra}

    assert coerce_tool_input(make_tool(args_schema=schema), {"a": 1, "b": 2}).value == {
        "a": 1,
        "b": 2,
    }


def test_the_problem_names_tool_field_and_type():
    schema = {"type": "object", "properties": {"a": INTEGER}, "required": ["a"]}

    fitted = coerce_tool_input(make_tool("add", args_schema=schema), {"a": "one"})

    assert fitted.problem == (
        "Wrong input for 'add': a: 'one' is not of type 'integer'. "
        "The tool was not called."
    )


def test_many_problems_are_counted_rather_than_listed():
    names = [f"f{number}" for number in range(8)]
    schema = {"type": "object", "properties": {"a": {}}, "required": names}

    assert (
        "; and 3 more" in coerce_tool_input(make_tool(args_schema=schema), {}).problem
    )
