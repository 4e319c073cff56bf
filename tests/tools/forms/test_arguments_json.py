"""Arguments of a trial as JSON: filled from the fields and back without loss."""

import pytest

from tools.forms.arguments import ArgumentsForm
from tools.forms.arguments_json import (
    JsonArgumentsForm,
    turn_into_fields,
    turn_into_json,
)

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "share": {"type": "number"},
        "is_metric": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "free": {},
        "place": {
            "type": "object",
            "properties": {"lat": {"type": "number"}, "name": {"type": "string"}},
        },
        "file": {"type": "string", "contentEncoding": "base64"},
    },
    "required": ["city"],
}


def as_json(text):
    return JsonArgumentsForm({"arguments-json": text})


@pytest.mark.parametrize(
    "values",
    [
        "{}",
        '{"city": "颐和园 “A”\\nB"}',
        '{"days": 3, "share": 0.1, "is_metric": false}',
        '{"share": 5}',
        '{"tags": ["a, b", "c"], "free": "text"}',
        '{"free": {"deep": [1, null, true]}}',
        '{"place": {"lat": -1.5, "name": "x"}}',
    ],
)
def test_json_comes_back_from_the_fields_as_it_was(values):
    text = as_json(values)
    fields = turn_into_fields(text, SCHEMA)
    sent = {
        fields.add_prefix(name): fields[name].value() or "" for name in fields.fields
    }
    sent = {name: str(value) for name, value in sent.items()}

    again = turn_into_json(ArgumentsForm(sent, {}, schema=SCHEMA))

    back = as_json(again.initial["json"])
    assert back.is_valid()
    assert back.tool_input() == text.tool_input()


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ('{"zip": 1}', "The form has no field for “zip”."),
        ('{"city": null}', "The form cannot show the value of “city”."),
        ('{"city": ""}', "The form cannot show the value of “city”."),
        ('{"city": 5}', "The form cannot show the value of “city”."),
        ('{"city": "a\\rb"}', "The form cannot show the value of “city”."),
        ('{"days": 2.5}', "The form cannot show the value of “days”."),
        ('{"is_metric": 1}', "The form cannot show the value of “is_metric”."),
        ('{"place": {"zip": 1}}', "The form cannot show the value of “place”."),
        ('{"file": "AAE="}', "The form cannot show the value of “file”."),
    ],
)
def test_what_the_fields_would_lose_stays_json_and_is_named(values, reason):
    text = as_json(values)

    assert turn_into_fields(text, SCHEMA) is None
    assert reason in text.errors["json"][0]


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ('{"city": "Oslo",\n "days": }', "Line 2, column 10"),
        ("[1]", 'Enter a JSON object such as {"city": "Oslo"}.'),
        ('{"days": NaN}', "cannot be stored"),
    ],
)
def test_json_that_is_not_an_object_says_where_it_is_wrong(typed, reason):
    text = as_json(typed)

    assert reason in text.errors["json"][0]
    assert turn_into_fields(text, SCHEMA) is None


def test_a_field_with_an_error_is_not_turned_into_json():
    typed = {"arg-city": "Oslo", "arg-days": "soon"}

    assert turn_into_json(ArgumentsForm(typed, {}, schema=SCHEMA)) is None


def test_missing_arguments_are_missing_in_json_too():
    found = turn_into_json(ArgumentsForm({"arg-days": "2"}, {}, schema=SCHEMA))

    assert found.initial["json"] == '{\n  "days": 2\n}'
