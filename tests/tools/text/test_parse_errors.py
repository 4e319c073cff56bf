"""What is wrong with a text, in the same words whichever reader found it."""

import pytest
import yaml
from django.utils import translation
from django.utils.translation import trans_real

from tools.text.parse_errors import (
    DUPLICATE_KEY,
    FALLBACK_MESSAGE,
    describe_text_error,
)

LOADERS = [
    pytest.param(yaml.SafeLoader, id="python"),
    pytest.param(yaml.CSafeLoader, id="c"),
]
INDENT = "does not match the lines it belongs to"


def flaw_in(text, loader=yaml.SafeLoader):
    with pytest.raises(yaml.YAMLError) as caught:
        yaml.load(text, Loader=loader)  # both are safe ones
    return describe_text_error(text, caught.value)


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("a: [1, 2\nb: 3\n", "line 1, column 4", "the list that begins here"),
        ("x: 1\na: {b: 1\nc: 3\n", "line 2, column 4", "the object that begins here"),
        (
            'a: 1\nb: "x\nc: 1\n',
            "line 2, column 4",
            "this quotation mark is not closed",
        ),
        ("a: 'x\n--- \n", "line 1, column 4", "this quotation mark is not closed"),
        ("a:\n  b: 1\n   c: 2\n", "line 3, column 5", "a colon is not allowed here"),
        ("a:\n    b: 1\n  c: 2\n", "line 3, column 3", INDENT),
        ("a:\n  - x\n - y\n", "line 3, column 2", INDENT),
        ("a: 1\nb\nc: 2\n", "line 3, column 1", "a colon is missing after the name"),
        ("a:\n\tb: 1\n", "line 2, column 1", "indent with spaces"),
        ("a: @x\n", "line 1, column 4", "a value cannot begin with this character"),
        ("a: ** bold\n", "line 1, column 5", "have a special meaning in YAML"),
        ("a: - b\n", "line 1, column 4", "on its own line"),
        ("a: | text\n  b\n", "line 1, column 6", "must begin on the next line"),
        ("a: [1,,2]\n", "line 1, column 7", "an extra bracket or comma"),
        ("a: 1\n---\nb: 2\n", "line 2, column 1", "a second document begins"),
        ("a: *x\n", "line 1, column 4", "there is no anchor with the name"),
        ("a: !x 1\n", "line 1, column 4", "the type after ! is not supported"),
        ("a: 1\nb: \x07\n", "line 2, column 4", "there is a control character here"),
    ],
)
def test_a_mistake_in_yaml_is_reported_where_it_begins(loader, text, place, message):
    flaw = flaw_in(text, loader)

    assert flaw.position == place
    assert message in flaw.message


@pytest.mark.parametrize("loader", LOADERS)
def test_a_wrong_backslash_is_no_open_quotation_mark(loader):
    assert "in double quotes, a backslash" in flaw_in('a: "\\d"\n', loader).message


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ('{"a": 1,\n\t"b" 2}', "line 2, column 6", "a colon is missing"),
        ('{"a": 1\n\t"b": 2}', "line 2, column 2", "a comma or a closing bracket"),
        ('{\n\t"a": ', "line 2, column 7", "a value is missing"),
        ('{\t"a": "x', "line 1, column 8", "this quotation mark is not closed"),
        ('{"a": 1}\n\t}', "line 2, column 2", "has ended before this"),
    ],
)
def test_what_begins_as_json_is_reported_by_its_rules(text, place, message):
    flaw = flaw_in(text)

    assert flaw.position == place
    assert message in flaw.message


def test_what_has_no_words_of_its_own_has_a_place_and_what_to_check():
    assert flaw_in("%YAML 9\n---\n") == ("line 1, column 8", FALLBACK_MESSAGE)


def test_a_mistake_is_reported_in_the_language_of_the_reader(monkeypatch):
    catalog = trans_real.translation("zh-hans")
    monkeypatch.setattr(catalog, "gettext", lambda text: f"译 {text}")

    with translation.override("zh-hans"):
        found = flaw_in("a:\n\nb: |x y")

    assert found.message.startswith("译 ")
    assert found.position == "译 line 3, column 5"


def test_a_name_that_is_there_twice_is_reported():
    error = yaml.MarkedYAMLError(problem=f"'a' {DUPLICATE_KEY}")

    assert describe_text_error("a: 1\na: 2", error).message == "'a' occurs twice"
