"""The fields that a tool is tried with, made from its schema."""

import json
from dataclasses import dataclass
from enum import StrEnum

import pytest
from pydantic import BaseModel

from tools.forms.arguments import ArgumentsForm
from tools.registry import find_function, tool


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


TEXTS = {"properties": {"it": {"type": "array", "items": {"type": "string"}}}}


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("2026-11-26", ["2026-11-26"]),
        ("a\r\n\r\nb c\r\n", ["a", "b c"]),
        ('["a", ""]', ["a", ""]),
        ("[]", []),
        ("[draft] a", ["[draft] a"]),
    ],
)
def test_texts_are_typed_one_per_line_or_as_json(typed, value):
    form = ArgumentsForm({"arg-it": typed}, schema=TEXTS)

    assert form.is_valid()
    assert form.tool_input() == {"it": value}
    assert form["it"].value() == typed


def test_a_list_without_lines_is_omitted():
    form = ArgumentsForm({"arg-it": " \n"}, schema=TEXTS)

    assert form.is_valid()
    assert form.tool_input() == {}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (["a", "b"], "a\nb"),
        (["a", ""], '[\n  "a",\n  ""\n]'),
        (["a\nb"], '[\n  "a\\nb"\n]'),
        ([], "[]"),
    ],
)
def test_texts_are_shown_one_per_line_where_that_keeps_them(value, text):
    form = ArgumentsForm(schema=TEXTS, values={"it": value})

    assert form["it"].value() == text
    assert form.fields["it"].kind == "list of texts (one per line)"


class Unit(StrEnum):
    C = "celsius"
    F = "fahrenheit"


@dataclass
class Address:
    street: str
    floor: int = 0


class Order(BaseModel):
    sku: str
    to: Address
    note: str | None = None


def test_enums_models_and_dataclasses_have_a_field_for_each_value():
    @tool
    def place(order: Order, unit: Unit = Unit.C) -> str:
        """Place an order."""
        return ""

    schema = find_function(f"{__name__}:{place.__qualname__}").args_schema
    form = ArgumentsForm(schema=schema)
    assert [
        (name, field.kind, field.required) for name, field in form.fields.items()
    ] == [
        ("order.sku", "text", True),
        ("order.to.street", "text", True),
        ("order.to.floor", "integer", False),
        ("order.note", "text", False),
        ("unit", "one of celsius, fahrenheit", False),
    ]

    data = {
        "arg-order.sku": "7",
        "arg-order.to.street": "Elm",
        "arg-unit": "fahrenheit",
    }
    form = ArgumentsForm(data, schema=schema)
    assert form.is_valid()
    assert form.tool_input() == {
        "order": {"sku": "7", "to": {"street": "Elm"}},
        "unit": "fahrenheit",
    }


def test_a_required_object_is_sent_without_any_of_its_values():
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    schema = {"properties": {"it": inner, "more": inner}, "required": ["it"]}
    form = ArgumentsForm({}, schema=schema)

    assert form.is_valid()
    assert form.tool_input() == {"it": {}}
