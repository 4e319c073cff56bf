"""Inputs from a body: pointers in texts, forms, and conditions."""

import pytest

from runs.models import Hook
from runs.services.errors import InputsRefused
from runs.services.hooks import mapping
from runs.services.hooks.mapping import (
    BodyUnreadable,
    explain_mismatch,
    fill_template,
    find_pointer_flaw,
    map_inputs,
    parse_hook_body,
)
from tools.errors import ToolFailed

ISSUE = {
    "action": "opened",
    "issue": {"title": "It {/breaks}", "labels": [{"name": "a"}], "n": 7, "x": None},
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("Fix {/issue/n}: {/issue/title}", "Fix 7: It {/breaks}"),
        ("{/issue/labels/0/name}", "a"),
        ("{/issue/x}", "null"),
        ("No pointer, {name} stays", "No pointer, {name} stays"),
        ("{/issue/labels}", '[\n  {\n    "name": "a"\n  }\n]'),
        ("", ""),
    ],
)
def test_pointers_are_replaced_once(template, text):
    assert fill_template(template, ISSUE) == text


def test_empty_braces_are_the_whole_body():
    assert '"action": "opened"' in fill_template("Body: {}", ISSUE)


def test_every_missing_value_is_named():
    with pytest.raises(InputsRefused) as caught:
        map_inputs({"input": "{/issue/body}", "who": "{/sender}"}, ISSUE)

    assert [error.field for error in caught.value.errors] == ["input", "who"]
    assert "'title'" in caught.value.errors[0].message


@pytest.mark.parametrize(
    ("body", "kind", "document"),
    [
        (b'{"a": 1}', "application/json; charset=utf-8", {"a": 1}),
        (b"a=1&b=x+y&c=", "application/x-www-form-urlencoded", None),
        (b"payload=%7B%22a%22%3A1%7D", "application/x-www-form-urlencoded", {"a": 1}),
        (b'"text"', "", "text"),
    ],
)
def test_json_and_forms_are_read(body, kind, document):
    expected = {"a": "1", "b": "x y", "c": ""} if document is None else document
    assert parse_hook_body(body, kind) == expected


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "application/json"),
        (b"<a/>", "text/xml"),
        (b"\xff", "application/json"),
        (b"[" * 100_000, "application/json"),
        (b"payload=x", "application/x-www-form-urlencoded"),
        (b"a=1&" * 2_000, "application/x-www-form-urlencoded"),
    ],
)
def test_other_bodies_are_refused(body, kind):
    with pytest.raises(BodyUnreadable):
        parse_hook_body(body, kind)


@pytest.mark.parametrize(
    ("pointer", "value", "starts"),
    [
        ("", "", True),
        ("/action", "opened", True),
        ("/action", "closed, opened", True),
        ("/action", "closed", False),
        ("/issue/n", "7", True),
        ("/none", "x", False),
    ],
)
def test_a_condition_compares_one_value(pointer, value, starts):
    hook = Hook(only_pointer=pointer, only_value=value)

    assert (explain_mismatch(hook, ISSUE) == "") == starts


def test_texts_have_pointers_that_can_be_read():
    assert find_pointer_flaw("{/a/b} {} {x} {") == ""


def test_a_value_that_is_repeated_too_often_is_refused_before_it_is_joined():
    with pytest.raises(InputsRefused, match="more than 1,000,000 characters"):
        map_inputs({"input": "{/a}" * 20}, {"a": "x" * 100_000})


def test_a_repeated_pointer_is_formatted_once(monkeypatch):
    formatted = []
    format_value = mapping.format_json_value
    monkeypatch.setattr(
        mapping,
        "format_json_value",
        lambda value: formatted.append(value) or format_value(value),
    )

    assert fill_template("{/a}{/a}{/b}", {"a": 1, "b": 2}) == "112"
    assert formatted == [1, 2]


def test_all_inputs_together_have_a_limit():
    templates = {f"v{number}": "{/a}" for number in range(5)}

    with pytest.raises(InputsRefused, match="v4: .* 4,000,000 characters"):
        map_inputs(templates, {"a": "x" * 900_000})


def test_indentation_is_left_out_where_it_would_be_too_long():
    deep: list = list(range(3_000))
    for _ in range(200):
        deep = [deep]

    assert fill_template("{}", deep).startswith("[[[")


def test_a_value_that_is_nested_too_deeply_is_refused():
    deep: list = []
    for _ in range(200_000):
        deep = [deep]

    with pytest.raises(ToolFailed, match="nested too deeply"):
        fill_template("{}", deep)


def test_a_pointer_with_a_very_long_number_finds_nothing():
    with pytest.raises(InputsRefused):
        map_inputs({"input": "{/" + "1" * 5_000 + "}"}, [1, 2])
