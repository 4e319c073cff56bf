"""Making text and JSON safe to store."""

import json

import pytest

from runs.engine.parsing.clean import MAX_DEPTH, TOO_DEEP, clean_json, clean_text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        pytest.param("plain", "plain", id="ascii"),
        pytest.param("Grüße 👋🏽", "Grüße 👋🏽", id="emoji"),
        pytest.param("a\x00b", "a\ufffdb", id="nul"),
        pytest.param("é\x00", "é\ufffd", id="nul beside letters"),
        pytest.param("a\ud83db", "a\ufffdb", id="lone surrogate"),
    ],
)
def test_text_is_sanitized_for_storage(text, clean):
    assert clean_text(text) == clean
    clean_text(text).encode()


@pytest.mark.parametrize(
    ("value", "clean"),
    [
        pytest.param(float("nan"), None, id="nan"),
        pytest.param([float("inf"), -float("inf"), 1.5], [None, None, 1.5], id="inf"),
        pytest.param({"a\x00": "\ud800"}, {"a\ufffd": "\ufffd"}, id="keys and values"),
        pytest.param({1: True, None: 2}, {"1": True, "None": 2}, id="keys of any type"),
        pytest.param((1, "x"), [1, "x"], id="tuple"),
        pytest.param(b"raw", "b'raw'", id="no JSON at all"),
        pytest.param(10**50, 10**50, id="large but printable"),
    ],
)
def test_json_is_sanitized_for_storage(value, clean):
    assert clean_json(value) == clean


def test_a_whole_number_too_long_to_print_becomes_text():
    cleaned = clean_json([10**5000, -(10**5000)])

    assert [type(item) for item in cleaned] == [str, str]
    json.dumps(cleaned)


def test_deep_nesting_ends_in_a_marker():
    value = []
    for _ in range(5000):
        value = [value]

    text = json.dumps(clean_json(value))

    assert TOO_DEEP in text
    assert text.count("[") <= MAX_DEPTH + 1


def test_cleaning_twice_changes_nothing():
    once = clean_json({"a": [float("nan"), "\x00", 10**4999, {"b": ("x",)}]})

    assert clean_json(once) == once
