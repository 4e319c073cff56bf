"""Evaluators of text: exact, contains, regex, one of."""

import pytest

from runs.evaluation.registry import validate_evaluator_config
from runs.evaluation.types import EvaluationExample, EvaluationRecord
from tests.evaluation.make import score


@pytest.mark.parametrize(
    ("answer", "expected", "config", "passes"),
    [
        ("Paris", "paris", {}, True),
        ("Paris", "paris", {"ignore_case": False}, False),
        (" New\n  York ", "new york", {}, True),
        ("New  York", "New York", {"ignore_space": False}, False),
        ("Paris.", "Paris", {}, False),
        ("«Paris»!", "Paris", {"ignore_punctuation": True}, True),
        ("巴黎。", "巴黎", {"ignore_punctuation": True}, True),
        ("It costs 1,000.50 €", "it costs 1000.5 €", {"same_numbers": True}, True),
        ("-0.0", "0", {"same_numbers": True}, True),
        ("1,2", "12", {"same_numbers": True}, False),
        ("v1.10", "v1.1", {"same_numbers": True}, False),
        ("STRASSE", "straße", {}, True),
        ("cafe\u0301", "café", {}, True),
        ("👩‍👩‍👧", "👩‍👩‍👧", {}, True),
        ("👍🏽", "👍", {}, False),
        ("", "x", {}, False),
        ("The answer is Paris", "paris", {"place": "end"}, True),
        ("Paris it is", "paris", {"place": "start"}, True),
        ("Well.\nANSWER: Paris", "paris", {"label": "answer:"}, True),
        ("ANSWER: Rome\nANSWER: Paris", "paris", {"label": "ANSWER:"}, True),
        ("Paris", "paris", {"label": "ANSWER:"}, False),
        ("so\n\nParis\n\n", "paris", {"line": "last"}, True),
        ("Paris\nbecause", "paris", {"line": "first"}, True),
        ({"city": "Paris"}, '{"city":"paris"}', {}, True),
    ],
)
def test_exact_ignores_what_it_is_set_to_ignore(answer, expected, config, passes):
    result = score("exact", answer, expected, **config)

    assert (result.problem, result.passed) == ("", passes)
    assert result.value == float(passes)
    assert bool(result.explanation) is not passes


@pytest.mark.parametrize(
    ("texts", "needs", "value", "passes"),
    [
        (["blue", "red"], "all", 0.5, False),
        (["blue", "sky"], "all", 1, True),
        (["green", "sky"], "any", 1, True),
        (["green"], "any", 0, False),
        (["green"], "none", 1, True),
        (["Blue"], "none", 0, False),
    ],
)
def test_contains_counts_the_texts(texts, needs, value, passes):
    result = score("contains", "The sky is BLUE", texts=texts, needs=needs)

    assert (result.value, result.passed) == (value, passes)


def test_contains_uses_the_expected_answer_without_texts():
    assert score("contains", "It is Paris!", "paris").passed
    assert score("contains", "It is Paris!").problem == (
        "The example has no expected answer."
    )


@pytest.mark.parametrize(
    ("answer", "config", "passes"),
    [
        ("New York", {}, True),
        ("nyc", {}, True),
        ("Rome", {}, False),
        ("New York NYC", {}, False),
        ("NYC", {"alternatives": False}, False),
        ("It is NYC", {"place": "end"}, True),
        ("NYC it is", {"place": "start"}, True),
        ("", {}, False),
        ("--", {"ignore_punctuation": True}, False),
    ],
)
def test_an_answer_equals_one_of_the_alternatives(answer, config, passes):
    expected = "New York\n\n  \nNYC\n!"

    result = score("exact", answer, expected, **{"alternatives": True, **config})

    assert (result.problem, result.passed) == ("", passes)


def test_an_answer_that_equals_no_alternative_is_shown_beside_them():
    result = score("exact", "c", "a\nb", alternatives=True)

    assert result.explanation == "Expected one of 'a', 'b', got 'c'."


@pytest.mark.parametrize(
    ("answer", "needs", "passes"),
    [
        ("It is NYC.", "any", True),
        ("It is Rome.", "any", False),
        ("It is NYC.", "none", False),
        ("It is Rome.", "none", True),
    ],
)
def test_an_answer_contains_one_of_the_alternatives(answer, needs, passes):
    expected = "New York\nNYC\n"

    result = score("contains", answer, expected, alternatives=True, needs=needs)

    assert (result.problem, result.passed) == ("", passes)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"needs": "any", "texts": ["a"]}, "remove the texts"),
        ({}, "require any of them, or none"),
    ],
)
def test_alternatives_with_settings_that_contradict_them_are_refused(config, message):
    problems = validate_evaluator_config("contains", {"alternatives": True, **config})

    assert message in problems[0].message


@pytest.mark.parametrize(
    ("answer", "expected", "passes"),
    [("no", "maybe\nno", True), ("yes", "maybe\nno", False)],
)
def test_one_of_accepts_several_expected_choices(answer, expected, passes):
    choices = ["yes", "no", "maybe"]

    result = score("one-of", answer, expected, choices=choices, alternatives=True)

    assert (result.passed, result.label) == (passes, answer)


@pytest.mark.parametrize(
    ("pattern", "answer", "config", "passes"),
    [
        (r"\d{3}", "call 123", {}, True),
        (r"\d{3}", "call 123", {"whole": True}, False),
        (r"(?:call) \d+", "call 123", {"whole": True}, True),
        ("CALL", "call 123", {}, False),
        ("CALL", "call 123", {"ignore_case": True}, True),
        ("^b$", "a\nb\nc", {}, False),
        ("^b$", "a\nb\nc", {"multiline": True}, True),
        ("a.b", "a\nb", {"dot_matches_newline": True}, True),
        ("secret", "all fine", {"is_found": False}, True),
        ("secret", "a secret", {"is_found": False}, False),
        (r"\p{Han}{2}", "巴黎", {"whole": True}, True),
    ],
)
def test_regex_finds_a_pattern(pattern, answer, config, passes):
    assert score("regex", answer, pattern=pattern, **config).passed is passes


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){20}$"])
def test_a_catastrophic_pattern_takes_linear_time(pattern):
    assert score("regex", "a" * 20_000 + "!", pattern=pattern).passed is False


@pytest.mark.parametrize("pattern", ["(", r"(a)\1", "(?=a)", "a" * 2_000, "a{900000}"])
def test_a_pattern_that_cannot_be_matched_safely_is_refused(pattern):
    problems = validate_evaluator_config("regex", {"pattern": pattern})

    assert len(problems) == 1


@pytest.mark.parametrize(
    ("answer", "expected", "passes", "label"),
    [
        ("Refund", "refund", True, "refund"),
        ("refund", "", True, "refund"),
        ("complaint", "refund", False, "complaint"),
        ("I think refund", "refund", False, ""),
    ],
)
def test_one_of_names_the_choice(answer, expected, passes, label):
    result = score("one-of", answer, expected, choices=["refund", "complaint"])

    assert (result.passed, result.label) == (passes, label)


def test_one_of_does_not_score_an_expectation_that_is_no_choice():
    result = score("one-of", "yes", "maybe", choices=["yes", "no"])

    assert "'maybe' is not one of the choices" in result.problem


def test_the_same_choice_twice_is_refused():
    problems = validate_evaluator_config("one-of", {"choices": ["Yes", "yes "]})

    assert "are the same choice" in problems[0].message


@pytest.mark.parametrize(
    ("status", "reason"),
    [("failed", "The run failed: no model."), ("canceled", "The run was canceled.")],
)
@pytest.mark.parametrize("kind", ["exact", "contains", "number", "json", "similarity"])
def test_a_run_that_failed_is_not_scored(kind, status, reason):
    message = "no model." if status == "failed" else ""
    record = EvaluationRecord(status=status, error_message=message)

    result = score(kind, None, "1", record=record)

    assert (result.value, result.passed, result.problem) == (None, None, reason)


def test_a_run_without_an_answer_at_a_limit_fails():
    record = EvaluationRecord(status="limit_reached", stop_reason="iterations")

    assert score("exact", None, "Paris", record=record).passed is False


@pytest.mark.parametrize("kind", ["exact", "contains", "similarity", "number"])
@pytest.mark.slow
def test_texts_of_a_megabyte_are_compared_and_longer_ones_are_not(kind):
    big = "wörd 5 " * 140_000

    result = score(kind, big, big if kind != "number" else "5")

    assert result.passed or result.problem
    assert score(kind, big * 2, "5").problem.startswith("The answer is longer than")


@pytest.mark.parametrize("kind", ["exact", "contains", "number", "json", "similarity"])
def test_any_text_gets_a_score_or_a_reason(kind):
    for text in ("", " ", "\0", "\ud800", "𝟙𝟚", "٣", "½", "'", "{" * 5_000, "∞", "NaN"):
        for expected in ("x", "5", text):
            result = score(kind, text, expected)

            assert "evaluator failed" not in result.problem, (text[:9], expected[:9])


def test_examples_are_frozen():
    example = EvaluationExample(expected_answer="a")

    with pytest.raises(ValueError, match="frozen"):
        example.expected_answer = "b"


@pytest.mark.parametrize(
    ("kind", "expected", "config"),
    [
        ("contains", "", {}),
        ("contains", "  ", {}),
        ("contains", "?", {"ignore_punctuation": True}),
        ("exact", " ", {}),
        ("exact", "...", {"ignore_punctuation": True, "place": "start"}),
        ("similarity", "...", {}),
    ],
)
def test_nothing_to_compare_leaves_it_to_other_evaluators(kind, expected, config):
    result = score(kind, "Any answer.", expected, **config)

    assert result.problem
    assert not result.applies


def test_a_text_of_which_nothing_counts_is_refused():
    config = {"texts": ["???"], "ignore_punctuation": True}

    [problem] = validate_evaluator_config("contains", config)

    assert problem.message == "Every text must have at least one character that counts."
