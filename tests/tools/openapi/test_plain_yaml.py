"""YAML that is read as JSON."""

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.openapi.plain_yaml import NotPlainYaml, read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("- 1\n- -2\n- 0x1f\n- 0o17\n- 1.5e3\n- .5", [1, -2, 31, 15, 1500.0, 0.5]),
        ("[true, False, null, ~, '']", [True, False, None, None, ""]),
        ("[no, yes, on, off, y]", ["no", "yes", "on", "off", "y"]),
        ("[2026-01-31, 12:30:45, 1_000]", ["2026-01-31", "12:30:45", "1_000"]),
        ("['7', \"true\", !!str 7, ! 7, !!int '7']", ["7", "true", "7", "7", 7]),
        ("200: {1.10: a, true: b}", {"200": {"1.10": "a", "true": "b"}}),
        ("a: |\n  x\n  y\nb: >-\n  x\n  y", {"a": "x\ny\n", "b": "x y"}),
        ("{a: {}, b: []}", {"a": {}, "b": []}),
        ("a: " + "9" * 400, {"a": math.inf}),
        ("a: 0x" + "9" * 400, {"a": "0x" + "9" * 400}),
    ],
)  # fmt: skip
def test_each_value_is_what_json_would_say(text, value):
    assert read_yaml(text) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 200_000, "nested too deeply"),
        ("{a: " * 100_000, "nested too deeply"),
        ("- " * 200_000, "nested too deeply"),
        ("? " * 100_000, "a key is a list or an object"),
        ("a: &x 1\nb: *x", "uses YAML aliases"),
        ("<<: *x", "uses YAML aliases"),
        ("!!python/object/apply:os.system [true]", "the YAML tag"),
        ("a: !!timestamp 2026-01-01", "the YAML tag"),
        ("a: !thing 1", "the YAML tag “!thing”"),
        ("a: 1\n---\nb: 2", "several documents"),
        ("a: [1", "in line 1, column 4, the list that begins here"),
        ("a\0b", "there is a control character here"),
    ],
)
def test_everything_else_is_a_sentence(text, why):
    with pytest.raises(NotPlainYaml, match=why.replace("[", r"\[")):
        read_yaml(text)


@given(text=st.text(alphabet="ab:-[]{}?*&!|>'\"#% \n\t0.~\0\ud800", max_size=40))
def test_no_text_breaks_the_reader(text):
    with suppress(ValueError):  # one of them is a character that is none
        read_yaml(text)
