"""Evaluators of numbers, JSON and similarity."""

import json

import pytest

from runs.evaluation import json_answer
from runs.evaluation.number import find_numbers
from runs.evaluation.registry import validate_evaluator_config
from runs.evaluation.similarity import common_subsequence
from tests.evaluation.make import score


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It is 42.", ["42"]),
        ("1,234,567.50 and -3", ["1234567.50", "-3"]),
        ("from 3-5", ["3", "5"]),
        ("x=-5e3", ["-5E+3"]),
        ("about .5, or −7", ["0.5", "-7"]),
        ("12km 20%", ["12", "20"]),
        ("共12个,第3名", ["12", "3"]),
        ("v1.2.3 abc123 a_4", []),
        ("1,2,3", ["1", "2", "3"]),
        ("1e99999 9e400", ["9E+400"]),
        ("٣", ["3"]),
        ("0.0", ["0.0"]),
        ("", []),
    ],
)
def test_numbers_are_found_in_text(text, numbers):
    assert [str(number) for number in find_numbers(text)] == numbers


@pytest.mark.parametrize(
    ("answer", "expected", "config", "passes"),
    [
        ("First 3, then 4", "4", {}, True),
        ("First 3, then 4", "3", {}, False),
        ("First 3, then 4", "3", {"which": "first"}, True),
        ("First 3, then 4", "4", {"which": "only"}, False),
        ("4 apples", "4", {"which": "only"}, True),
        ("Total: 4 (of 9)", "4", {"which": "label", "label": "total:"}, True),
        ("4 of 9", "4", {"which": "label", "label": "total:"}, False),
        ("99.5", "100", {"relative": 0.005}, True),
        ("99.4", "100", {"relative": 0.005}, False),
        ("100.01", "100", {"absolute": 0.01}, True),
        ("0.3", "0.1 + 0.2"[:3], {"absolute": 0.2}, True),
        ("1e400", "1e400", {}, True),
        ("none", "4", {}, False),
        (4, "4", {}, True),
    ],
)
def test_a_number_may_be_off_by_its_tolerance(answer, expected, config, passes):
    assert score("number", answer, expected, **config).passed is passes


@pytest.mark.parametrize("expected", ["many", "3 or 4", ""])
def test_an_expectation_without_one_number_is_not_scored(expected):
    assert score("number", "3", expected).problem


@pytest.mark.parametrize(
    ("answer", "expected", "config", "value"),
    [
        ('{"a": 1, "b": [1, 2]}', '{"b": [1, 2], "a": 1.0}', {}, 1),
        ('```json\n{"a": 1}\n```', '{"a": 1}', {}, 1),
        ({"a": 1}, '{"a": 1}', {}, 1),
        ("[]", "[]", {}, 1),
        ("null", "null", {}, 1),
        ('{"a": true}', '{"a": 1}', {}, 0),
        ('{"a": "1"}', '{"a": 1}', {}, 0),
        ('{"a": 1, "b": 2}', '{"a": 1}', {}, 0),
        ("[1, 2]", "[2, 1]", {}, 0),
        ("[1, 2]", "[2, 1]", {"ignore_order": True}, 1),
        ("[1, 1, 2]", "[1, 2, 2]", {"ignore_order": True}, 0),
        ('[{"x": [1, 2]}]', '[{"x": [2, 1]}]', {"ignore_order": True}, 1),
        ("[1.1, 0.9]", "[1, 1]", {"ignore_order": True, "tolerance": 0.2}, 1),
        ("[0.9, 2]", "[1, 1.9]", {"tolerance": 0.2}, 1),
        ('{"a": 1.3}', '{"a": 1}', {"tolerance": 0.3}, 1),
        ('{"a": 1.31}', '{"a": 1}', {"tolerance": 0.3}, 0),
        ("[1e400]", "[1]", {"tolerance": 0.3}, 0),
        (f"[{10**400}]", "[1]", {"tolerance": 0.3}, 0),
        ('{"a": "x"}', '{"a": "x"}', {"fields": ["a", "b"]}, 1),
        ('{"a": "y"}', '{"a": "x"}', {"fields": ["a", "b"]}, 0),
        (
            '[{"x": 1.1}, {"x": 0.9}]',
            '[{"x": 1.0}, {"x": 1.25}]',
            {"ignore_order": True, "tolerance": 0.15},
            1,
        ),
        (
            '[{"x": 1.1}, {"x": 0.7}]',
            '[{"x": 1.0}, {"x": 1.25}]',
            {"ignore_order": True, "tolerance": 0.15},
            0,
        ),
        ("Sure! 1", "1", {}, 0),
        ('{"a": 1, "b": 2}', '{"a": 1, "b": 3}', {"fields": ["a", "b"]}, 0.5),
        ('{"a": [{"n": 1}]}', '{"a": [{"n": 1}], "z": 0}', {"fields": ["a.0.n"]}, 1),
        ('{"b": null}', "{}", {"fields": ["b"]}, 0),
        ("[" * 20_000 + "]" * 20_000, "[]", {}, 0),
    ],
)
def test_json_is_compared_by_value(answer, expected, config, value):
    if "fields" in config:
        config = {**config, "compare": "fields"}

    result = score("json", answer, expected, **config)

    assert (result.problem, result.value) == ("", value)
    assert result.passed is (value == 1)


def test_json_must_fit_its_schema():
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"minimum": 1}}}
    settings = {"output_schema": schema, "compare": "nothing"}

    assert score("json", '{"a": 2}', **settings).passed
    assert "a: 0 is less than" in score("json", '{"a": 0}', **settings).explanation
    assert not score("json", "[]", **settings).passed


def test_json_that_takes_too_long_to_compare_is_not_scored(monkeypatch):
    monkeypatch.setattr(json_answer, "MAX_COMPARED_VALUES", 1_000)
    words = [f"word {number}" for number in range(60)]
    answer, expected = json.dumps(words[::-1]), json.dumps(words)

    assert score("json", expected, expected).passed
    assert "too large" in score("json", answer, expected, ignore_order=True).problem


def test_a_field_that_nobody_has_is_not_scored():
    settings = {"compare": "fields", "fields": ["totl"]}

    result = score("json", '{"total": 1}', '{"total": 2}', **settings)

    assert "Neither the expected answer nor the answer contains: totl" in result.problem


@pytest.mark.parametrize(
    ("absolute", "expected", "answer", "passed"),
    [(0.3, "1", "1.3", True), (0.7, "10", "10.7", True), (0.3, "1", "1.31", False)],
)
def test_a_number_may_be_off_by_exactly_the_tolerance(
    absolute, expected, answer, passed
):
    assert score("number", answer, expected, absolute=absolute).passed is passed


def test_an_expectation_that_is_not_json_is_not_scored():
    assert score("json", "{}", "{").problem == "The expected answer is not JSON."


@pytest.mark.parametrize(
    ("config", "word"),
    [
        ({"output_schema": {"type": "nonsense"}}, "not a valid JSON Schema"),
        ({"compare": "fields"}, "Name the fields"),
        ({"compare": "nothing"}, "Enter a schema"),
        ({"colour": 1}, "Extra inputs are not permitted"),
        ({"tolerance": "NaN"}, "finite number"),
    ],
)
def test_json_settings_say_what_is_wrong(config, word):
    assert word in str(validate_evaluator_config("json", config))


@pytest.mark.parametrize(
    ("method", "expected", "answer", "value"),
    [
        ("token_f1", "The quick fox", "a quick, brown fox!", 0.8),
        ("token_f1", "5.0 apples", "5 apples", 1),
        ("token_f1", "state-of-the-art", "state of art", 1),
        ("token_f1", "巴黎", "在巴黎", 0.8),
        ("token_f1", "x", "", 0),
        ("rouge_l", "a b c d", "a c d e", 0.75),
        ("rouge_l", "我在巴黎", "我在罗马", 0.5),
        ("rouge_l", "x", "👍", 0),
    ],
)
def test_similarity_is_the_part_of_shared_words(method, expected, answer, value):
    result = score("similarity", answer, expected, method=method)

    assert result.value == pytest.approx(value)
    assert result.passed is (value >= 0.5)


def test_similarity_to_nothing_is_not_scored():
    assert score("similarity", "x", "the!").problem
    assert score("similarity", "x", "👍", method="rouge_l").problem


def test_a_subsequence_is_as_long_as_by_the_textbook():
    words = list("abcabbacda")
    for shift in range(len(words)):
        other = (words[shift:] + words[:shift])[::-1]
        table = [[0] * (len(other) + 1) for _ in range(len(words) + 1)]
        for i, one in enumerate(words):
            for j, two in enumerate(other):
                table[i + 1][j + 1] = (
                    table[i][j] + 1
                    if one == two
                    else max(table[i][j + 1], table[i + 1][j])
                )
        assert common_subsequence(words, other) == table[-1][-1]
