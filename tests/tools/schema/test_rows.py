"""Arguments as rows, and back to the schema they came from."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.schema_draft import (
    Draft,
    NoSchema,
    changed,
    draft_of,
    hints_for,
    schema_in,
)
from tools.schema_rows import Arguments, Row, arguments_of, schema_of

FULL = {
    "type": "object",
    "properties": {
        "status": {
            "type": "string",
            "description": "Two\nlines.",
            "enum": ["open", "paid"],
            "default": "open",
            "pattern": "^[a-z]+$",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 5},
        "share": {"type": "number", "enum": [0.5, 1.0], "default": 1.0},
        "sure": {"type": "boolean", "default": False},
        "ids": {"type": "array", "items": {"type": "string"}, "maxItems": 9},
        "deep": {"type": "array", "items": {"type": "array"}},
        "when": {"type": ["string", "null"], "default": None},
        "any": {},
        "one": {"$ref": "#/$defs/one"},
    },
    "required": ["limit", "status"],
    "additionalProperties": False,
    "$defs": {"one": {"type": "string", "default": ""}},
}


def test_rows_lose_nothing():
    draft = draft_of(FULL)
    made = schema_in(draft)

    assert draft.shape == "rows"
    assert {**made, "required": sorted(made["required"])} == FULL
    assert json.dumps(made["properties"]["share"]["default"]) == "1.0"
    assert [*made["properties"]] == [*FULL["properties"]]


def test_a_usual_argument_needs_no_json():
    status, limit, *_ = draft_of(FULL).rows

    assert limit == Row("limit", "integer", True, default="5", least="1", most="50")
    assert (status.choices, status.default) == ("open\npaid", "open")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", " ", "a", "string", "integer", "a\nb", "a\rb", " a", "null"])
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner)
    ),
    max_leaves=6,
)
TYPED = st.sampled_from(
    ["string", "integer", "number", "boolean", "array", "object", "null"]
)
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "type": TYPED | VALUES,
        "items": st.fixed_dictionaries({"type": TYPED}) | VALUES,
        "description": VALUES,
        "enum": st.lists(VALUES, max_size=3) | VALUES,
        **dict.fromkeys(("default", "const"), VALUES),
        **dict.fromkeys(("minimum", "maximum", "minLength", "maxItems"), VALUES),
    },
)
SCHEMAS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.just("object") | VALUES,
        "properties": st.dictionaries(st.text(max_size=4), PARTS, max_size=4) | VALUES,
        "required": st.lists(st.text(max_size=4), max_size=3) | VALUES,
        "additionalProperties": VALUES,
    },
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SCHEMAS)
def test_whatever_becomes_rows_comes_back_from_the_browser(schema):
    draft = draft_of(schema)
    if draft.shape == "json":
        assert draft.why.startswith("It stays JSON: ")
        assert json.loads(draft.json) == schema
        return
    typed = [through_a_browser(row) for row in draft.rows]
    back = schema_of(Arguments(tuple(typed), draft.rest))

    wanted = {"type": "object", "properties": {}, **schema}
    for one in (back, wanted):
        one["required"] = sorted(one.get("required", []))
    assert json.dumps(back, sort_keys=True) == json.dumps(wanted, sort_keys=True)


def through_a_browser(row: Row) -> Row:
    """Return the row as a form sends it: each line break is two characters."""
    values = {
        name: "\n".join(value.replace("\r\n", "\n").split("\r"))
        if isinstance(value, str)
        else value
        for name, value in vars(row).items()
    }
    return Row(**{**values, "name": values["name"].strip()})


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"properties": {"a": True}}, "'a' is described by true"),
        ({"properties": {"a": {}}, "required": ["b"]}, "it requires 'b', which"),
        ({"properties": {" a": {}}}, "the name ' a' does not fit"),
        ({"properties": {str(n): {} for n in range(101)}}, "more than 100"),
        ({"type": ["object"]}, "does not describe an object"),
    ],
)
def test_what_rows_cannot_hold_stays_json_and_says_why(schema, why):
    draft = draft_of(schema)

    assert draft.shape == "json"
    assert why in draft.why
    assert json.loads(draft.json) == schema


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (Row(description="x"), "Argument 1 has no name."),
        (Row("n", "integer", default="1.5"), "'n': the default '1.5' is not a whole"),
        (Row("n", "integer", default="true"), "'n': the default 'true' is not a whole"),
        (Row("n", "boolean", default="1"), "'n': the default '1' is not true or false"),
        (Row("n", "number", default="NaN"), "NaN is none"),
        (Row("n", "number", choices="1\nx"), "'n': the allowed value 'x' is not JSON"),
        (Row("n", "boolean", choices="1"), "'n': only texts and numbers"),
        (Row("n", "object", least="1"), "'n': 'object' has no least and most"),
        (Row("n", "string", most="1.5"), "'n': the most '1.5' is not a number of char"),
        (Row("n", "number", least="[]"), "'n': the least '[]' is not a number."),
        (Row("n", rest="[]"), "'n': more is a JSON object"),
        (Row("n", rest='{"type": 1}'), "'n': 'type' is there twice"),
        (Row("n", "tuple"), "'n': there is no type 'tuple'"),
        (Row("n", rest='{"pattern": "(a+)+"}'), "'n': The pattern '(a+)+' repeats"),
        (Row("n", rest='{"minimum": "x"}'), "'n': it/minimum: 'x' is not of type"),
        (Row("n", description="\ud800"), "cannot be stored"),
        (Row("n", "number", most="1e999"), "cannot be stored"),
    ],
)
def test_what_is_wrong_is_a_sentence_that_names_the_argument(row, told):
    with pytest.raises(NoSchema) as none:
        schema_in(Draft("rows", rows=(row,)))

    assert told in str(none.value)


def test_two_arguments_of_one_name_are_refused():
    with pytest.raises(NoSchema, match="'a': two arguments have this name"):
        schema_in(Draft("rows", rows=(Row("a"), Row("a"))))


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (Row("n", "integer", default="9", most="5"), "'n': its default does not fit."),
        (Row("n", "number", least="2", most="1"), "'n': its least is more than"),
    ],
)
def test_what_is_hardly_meant_is_a_hint(row, told):
    draft = Draft("rows", rows=(row,))

    assert schema_in(draft)
    assert told in " ".join(hints_for(draft))


@pytest.mark.parametrize(
    ("action", "names"),
    [
        ("add", ["a", "b", ""]),
        ("up-1", ["b", "a"]),
        ("up-0", ["a", "b"]),
        ("down-0", ["b", "a"]),
        ("down-1", ["a", "b"]),
        ("remove-0", ["b"]),
        ("remove-7", ["a", "b"]),
        ("nonsense", ["a", "b"]),
    ],
)
def test_a_button_changes_the_rows(action, names):
    draft = changed(Draft("rows", rows=(Row("a"), Row("b"))), action)

    assert [row.name for row in draft.rows] == names
    assert draft.is_changing


def test_rows_become_json_and_json_becomes_rows():
    rows = draft_of(FULL)
    text = changed(rows, "json")
    back = changed(text, "rows")

    assert (text.shape, back.rows, back.rest) == ("json", rows.rows, rows.rest)


def test_what_is_no_schema_keeps_its_shape_and_its_text():
    draft = changed(Draft("json", json="{"), "rows")

    assert (draft.shape, draft.json) == ("json", "{")
    assert "Line 1, column 2" in draft.why


def test_no_schema_is_one_text():
    assert schema_in(draft_of(None)) is None
    assert arguments_of({"type": "object"}).rows == ()
