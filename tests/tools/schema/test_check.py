"""What is taken as the schema of a tool's arguments."""

import math

import pytest

from tools.schema_check import flaws_of_schema


def test_a_usual_schema_is_taken():
    assert (
        flaws_of_schema(
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
        ([], "is a JSON object"),
        ({"type": "string"}, "are an object"),
        ({"type": "object", "properties": []}, "no JSON Schema. At properties"),
        ({"properties": {"a": {"type": "text"}}}, "no JSON Schema"),
        ({"properties": {"a": {"$ref": "http://x/y"}}}, "leads out of the schema"),
        ({"properties": {"a": {"$ref": "other.json"}}}, "leads out of the schema"),
        ({"properties": {"a": {"pattern": "(a+)+$"}}}, "repeats a repetition"),
        ({"properties": {"a": {"pattern": "^(([a-z])+.)+$"}}}, "repeats a repetition"),
        ({"properties": {"a": {"pattern": "(a|b*)*c"}}}, "repeats a repetition"),
        ({"properties": {"a": {"pattern": "(x"}}}, "is not a 'regex'"),
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
    assert why in " ".join(flaws_of_schema(schema))


def test_a_deep_schema_is_a_sentence():
    schema = {"type": "object"}
    for _ in range(300):
        schema = {"type": "object", "properties": {"a": schema}}

    assert "nested too deeply" in " ".join(flaws_of_schema(schema))
