"""What an argument takes, in words."""

import pytest

from tools.argument_kind import kind_of
from tools.schema_rows import TYPES


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({}, "anything"),
        ({"type": "integer"}, "whole number"),
        ({"type": "string", "format": "date"}, "text (date)"),
        ({"type": ["string", "integer"]}, "text or whole number"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "whole number"),
        ({"enum": ["c", "f"]}, "one of c, f"),
        ({"type": "array"}, "list"),
        ({"type": "array", "items": {}}, "list"),
        ({"type": "array", "items": {"type": "string"}}, "list of texts"),
        (
            {"type": "array", "items": {"type": "string", "enum": ["c", "f"]}},
            "list of one of c, f",
        ),
    ],
)
def test_a_type_is_said_in_words(part, words):
    assert kind_of(part) == words


@pytest.mark.parametrize("name", [name for name in TYPES if ":" not in name])
def test_a_form_calls_a_type_as_tables_do(name):
    assert kind_of({"type": name} if name else {}) == TYPES[name].lower()
