"""What an argument takes, in words."""

import pytest

from tools.argument_kind import kind_of


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({}, "any JSON"),
        ({"type": "integer"}, "integer"),
        ({"type": "string", "format": "date"}, "string (date)"),
        ({"type": ["string", "integer"]}, "string or integer"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer"),
        ({"enum": ["c", "f"]}, "one of c, f"),
        ({"type": "array"}, "list"),
        ({"type": "array", "items": {}}, "list"),
        ({"type": "array", "items": {"type": "string"}}, "list of strings"),
        (
            {"type": "array", "items": {"type": "string", "enum": ["c", "f"]}},
            "list of one of c, f",
        ),
    ],
)
def test_a_type_is_said_in_words(part, words):
    assert kind_of(part) == words
