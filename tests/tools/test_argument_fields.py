"""The fields that a tool is tried with, made from its schema."""

import pytest

from tools.forms.arguments import ArgumentsForm


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "WholeNumberField"),
        ({"anyOf": [True, {"type": "string"}]}, "JsonValueField"),
        ({"oneOf": [False]}, "JsonValueField"),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "JsonValueField"),
    ],
)
def test_each_schema_has_a_field(part, field):
    form = ArgumentsForm(schema={"properties": {"it": part}})

    assert type(form.fields["it"]).__name__ == field
