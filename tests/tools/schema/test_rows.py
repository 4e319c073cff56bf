"""Arguments as rows, and back to the schema they came from."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.schema.draft import (
    InvalidSchema,
    SchemaDraft,
    apply_editor_action,
    draft_from_schema,
    iter_draft_hints,
    schema_from_draft,
)
from tools.schema.rows import (
    SchemaRow,
    SchemaTable,
    schema_from_table,
    table_from_schema,
)

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
    draft = draft_from_schema(FULL)
    made = schema_from_draft(draft)

    assert draft.shape == "rows"
    assert {**made, "required": sorted(made["required"])} == FULL
    assert json.dumps(made["properties"]["share"]["default"]) == "1.0"
    assert [*made["properties"]] == [*FULL["properties"]]


def test_a_usual_argument_needs_no_json():
    status, limit, *_ = draft_from_schema(FULL).rows

    assert limit == SchemaRow(
        "limit", "integer", True, default="5", least="1", most="50"
    )
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
@pytest.mark.slow
def test_whatever_becomes_rows_comes_back_from_the_browser(schema):
    draft = draft_from_schema(schema)
    if draft.shape == "json":
        assert draft.conversion_error.startswith("Shown as JSON: ")
        assert json.loads(draft.json) == schema
        return
    typed = [through_a_browser(row) for row in draft.rows]
    back = schema_from_table(SchemaTable(tuple(typed), draft.rest))

    wanted = {"type": "object", "properties": {}, **schema}
    for one in (back, wanted):
        one["required"] = sorted(one.get("required", []))
    assert json.dumps(back, sort_keys=True) == json.dumps(wanted, sort_keys=True)


def through_a_browser(row: SchemaRow) -> SchemaRow:
    """Return the row as a form sends it: each line break is two characters."""
    values = {
        name: "\n".join(value.replace("\r\n", "\n").split("\r"))
        if isinstance(value, str)
        else value
        for name, value in vars(row).items()
    }
    return SchemaRow(**{**values, "name": values["name"].strip()})


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"properties": {"a": True}}, "“a” is true instead of an object"),
        (
            {"properties": {"a": {}}, "required": ["b"]},
            "“b” is required but not defined",
        ),
        ({"properties": {" a": {}}}, "the name “ a” does not fit"),
        ({"properties": {str(n): {} for n in range(101)}}, "more than 100"),
        ({"type": ["object"]}, "does not describe named arguments"),
    ],
)
def test_what_rows_cannot_hold_stays_json_and_says_why(schema, why):
    draft = draft_from_schema(schema)

    assert draft.shape == "json"
    assert why in draft.conversion_error
    assert json.loads(draft.json) == schema


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (SchemaRow(description="x"), "Enter a name for argument 1."),
        (
            SchemaRow("n", "integer", default="1.5"),
            "Argument “n”: default value “1.5” is not an integer",
        ),
        (
            SchemaRow("n", "integer", default="true"),
            "Argument “n”: default value “true” is not an integer",
        ),
        (
            SchemaRow("n", "boolean", default="1"),
            "Argument “n”: default value “1” is not true or false",
        ),
        (SchemaRow("n", "number", default="NaN"), "NaN is not allowed"),
        (
            SchemaRow("n", "number", choices="1\nx"),
            "Argument “n”: allowed value “x” is not valid JSON",
        ),
        (
            SchemaRow("n", "boolean", choices="1"),
            "Argument “n”: only texts and numbers",
        ),
        (
            SchemaRow("n", "object", least="1"),
            "Argument “n”: this type cannot have a minimum",
        ),
        (
            SchemaRow("n", "string", most="1.5"),
            "Argument “n”: maximum “1.5” is not a length",
        ),
        (
            SchemaRow("n", "number", least="[]"),
            "Argument “n”: minimum “[]” is not a number.",
        ),
        (
            SchemaRow("n", rest="[]"),
            "Argument “n”: Additional keywords: enter a JSON object",
        ),
        (
            SchemaRow("n", rest='{"type": 1}'),
            "Argument “n”: remove “type” from the additional",
        ),
        (SchemaRow("n", "tuple"), "Argument “n”: unknown type “tuple”"),
        (
            SchemaRow("n", rest='{"pattern": "(a+)+"}'),
            "Argument “n”: The pattern “(a+)+” repeats",
        ),
        (
            SchemaRow("n", rest='{"minimum": "x"}'),
            'At it/minimum: "x" is not of type',
        ),
        (SchemaRow("n", description="\ud800"), "cannot be stored"),
        (SchemaRow("n", "number", most="1e999"), "cannot be stored"),
    ],
)
def test_what_is_wrong_is_a_sentence_that_names_the_argument(row, message):
    with pytest.raises(InvalidSchema) as none:
        schema_from_draft(SchemaDraft("rows", rows=(row,)))

    assert message in str(none.value)


def test_two_arguments_of_one_name_are_refused():
    with pytest.raises(
        InvalidSchema, match="Argument “a”: two arguments have this name"
    ):
        schema_from_draft(SchemaDraft("rows", rows=(SchemaRow("a"), SchemaRow("a"))))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            SchemaRow("n", "integer", default="9", most="5"),
            "Argument “n”: the default value does not match.",
        ),
        (
            SchemaRow("n", "number", least="2", most="1"),
            "Argument “n”: the minimum is greater than",
        ),
    ],
)
def test_what_is_hardly_meant_is_a_hint(row, message):
    draft = SchemaDraft("rows", rows=(row,))

    assert schema_from_draft(draft)
    assert message in " ".join(iter_draft_hints(draft))


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
    draft = apply_editor_action(
        SchemaDraft("rows", rows=(SchemaRow("a"), SchemaRow("b"))), action
    )

    assert [row.name for row in draft.rows] == names
    assert draft.is_changing


def test_rows_become_json_and_json_becomes_rows():
    rows = draft_from_schema(FULL)
    text = apply_editor_action(rows, "json")
    back = apply_editor_action(text, "rows")

    assert (text.shape, back.rows, back.rest) == ("json", rows.rows, rows.rest)


def test_what_is_no_schema_keeps_its_shape_and_its_text():
    draft = apply_editor_action(SchemaDraft("json", json="{"), "rows")

    assert (draft.shape, draft.json) == ("json", "{")
    assert "Line 1, column 2" in draft.conversion_error


def test_no_schema_is_one_text():
    assert schema_from_draft(draft_from_schema(None)) is None
    assert table_from_schema({"type": "object"}).rows == ()


@pytest.mark.parametrize(
    ("draft", "names"),
    [
        (SchemaDraft(), ["x", "y"]),
        (SchemaDraft("rows", rows=(SchemaRow("a"), SchemaRow("x"))), ["a", "x", "y"]),
        (SchemaDraft("json", json='{"properties": {"a": {}}}'), ["x", "y", "a"]),
        (SchemaDraft("json"), ["x", "y"]),
    ],
)
def test_arguments_are_added_by_their_names(draft, names):
    added = apply_editor_action(draft, "add:x,y")

    assert added.is_changing
    assert [*schema_from_draft(added)["properties"]] == names


def test_arguments_are_not_added_to_what_is_no_schema():
    draft = SchemaDraft("json", json="{")

    assert apply_editor_action(draft, "add:x").json == "{"
