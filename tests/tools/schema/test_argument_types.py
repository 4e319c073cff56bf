"""What an argument takes, in words."""

import pytest

from tools.schema.argument_types import describe_argument_type
from tools.schema.rows import TYPE_CHOICES


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({}, "any value"),
        ({"type": "integer"}, "integer"),
        ({"type": "string", "format": "date"}, "text (date)"),
        ({"type": ["string", "integer"]}, "text / integer"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer"),
        ({"enum": ["c", "f"]}, "one of c, f"),
        ({"type": "array"}, "list"),
        ({"type": "array", "items": {}}, "list"),
        ({"type": "array", "items": {"type": "string"}}, "list of texts"),
        (
            {"type": "array", "items": {"type": "string", "enum": ["c", "f"]}},
            "list of: one of c, f",
        ),
    ],
)
def test_a_type_is_said_in_words(part, words):
    assert describe_argument_type(part) == words


@pytest.mark.parametrize("name", [name for name in TYPE_CHOICES if ":" not in name])
def test_a_form_calls_a_type_as_tables_do(name):
    assert (
        describe_argument_type({"type": name} if name else {})
        == TYPE_CHOICES[name].lower()
    )
