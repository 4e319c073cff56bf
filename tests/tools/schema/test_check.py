"""What is taken as the schema of a tool's arguments."""

import math

import pytest

from tools.schema.check import find_schema_flaws


def test_a_usual_schema_is_taken():
    assert (
        find_schema_flaws(
            {
                "type": "object",
                "properties": {
                    "id": {"type": "string", "pattern": "^[a-z]+(-[0-9]{1,3})?$"},
                    "rows": {"$ref": "#/$defs/rows"},
                },
                "$defs": {"rows": {"type": "array", "items": {"type": "integer"}}},
            }
        )
        == []
    )


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ([], "Enter a JSON object"),
        ({"type": "string"}, "must be an object"),
        (
            {"type": "object", "properties": []},
            "Not a valid JSON Schema. At properties",
        ),
        ({"properties": {"a": {"type": "text"}}}, "Not a valid JSON Schema"),
        ({"properties": {"a": {"$ref": "http://x/y"}}}, "leads outside the schema"),
        ({"properties": {"a": {"$ref": "other.json"}}}, "leads outside the schema"),
        ({"properties": {"a": {"pattern": "(a+)+$"}}}, "repeats a repetition"),
        ({"properties": {"a": {"pattern": "^(([a-z])+.)+$"}}}, "repeats a repetition"),
        ({"properties": {"a": {"pattern": "(a|b*)*c"}}}, "repeats a repetition"),
        ({"properties": {"a": {"pattern": "(x"}}}, "is not valid"),
        ({"properties": {"a": {"pattern": "a" * 301}}}, "at most 300"),
        ({"title": "a" * 300_001}, "larger than 300 KB"),
        ({"patternProperties": {"(a*)*": {}}}, "repeats a repetition"),
        ({"properties": {"a": {"maximum": math.inf}}}, "cannot be stored"),
        ({"properties": {"a": {"default": [math.nan]}}}, "cannot be stored"),
        ({"properties": {"a\0": {}}}, "cannot be stored"),
        ({"properties": {"a": {"enum": ["\udc00"]}}}, "cannot be stored"),
    ],
)
def test_everything_else_is_a_sentence(schema, why):
    assert why in " ".join(find_schema_flaws(schema))


def test_a_deep_schema_is_a_sentence():
    schema = {"type": "object"}
    for _ in range(300):
        schema = {"type": "object", "properties": {"a": schema}}

    assert "nested too deeply" in " ".join(find_schema_flaws(schema))
