"""The fields that a tool is tried with, made from its schema."""

import json

import pytest

from tools.forms.arguments import ArgumentsForm


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "WholeNumberField"),
        ({"anyOf": [True, {"type": "string"}]}, "JsonValueField"),
        ({"oneOf": [False]}, "JsonValueField"),
        ({"type": ["string", "null"]}, "TextField"),
        ({"type": ["null", "integer"]}, "WholeNumberField"),
        ({"type": ["string", "integer"]}, "JsonValueField"),
        ({"type": ["null"]}, "JsonValueField"),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "JsonValueField"),
    ],
)
def test_each_schema_has_a_field(part, field):
    form = ArgumentsForm(schema={"properties": {"it": part}})

    assert type(form.fields["it"]).__name__ == field


def test_null_is_no_choice_of_a_value_that_may_be_left_out():
    part = {"type": ["string", "null"], "enum": ["a", None]}
    form = ArgumentsForm(schema={"properties": {"it": part}})

    assert form.fields["it"].values == ["a"]


@pytest.mark.parametrize("text", ["{}", "[]", '""', "0", "false"])
def test_an_empty_value_is_a_value(text):
    schema = {"properties": {"it": {"type": ["object", "array"]}}, "required": ["it"]}
    form = ArgumentsForm({"arg-it": text}, schema=schema)

    assert form.is_valid()
    assert form.tool_input() == {"it": json.loads(text)}
