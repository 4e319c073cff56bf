"""The members of a JSON object as lines."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.forms.json_body import FlatJsonField, is_flat_object

SCALARS = st.none() | st.booleans() | st.integers() | st.text()


@given(st.dictionaries(st.text(), SCALARS))
def test_what_is_called_flat_comes_back_as_it_was(body):
    if is_flat_object(body):
        field = FlatJsonField(required=False)

        again = field.to_python(field.prepare_value(body))

        assert json.dumps(again) == json.dumps(body)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"a": "5", "b": 5, "c": None, "d": True, "e": "true", "f": "", "g": " x "},
        {"q": "{id}", "text": "two\nlines", "odd": "a\u2028b", "quoted": '"a"'},
    ],
)
def test_plain_members_are_flat(body):
    assert is_flat_object(body)


@pytest.mark.parametrize(
    "body",
    [{"a": {}}, {"a": [1]}, {"a:b": 1}, {" a": 1}, {"": 1}, {"a\nb": 1}, [], None],
)
def test_what_lines_cannot_say_is_not_flat(body):
    assert not is_flat_object(body)
