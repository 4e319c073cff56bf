"""Evaluators of tool calls, tool rules and limits."""

import pytest

from runs.evaluation.registry import validate_evaluator_config
from runs.evaluation.types import EvaluationExample, EvaluationRecord
from tests.evaluation.make import make_expected, make_record, make_step, score

A = ("find", {"q": "a"})
B = ("find", {"q": "b"})
SEND = ("send", {"to": "ann"})


def match(expected, made, **config):
    record = make_record(*(make_step(tool, given) for tool, given in made))
    return score(
        "tool-calls", "", record=record, example=make_expected(*expected), **config
    )


@pytest.mark.parametrize(
    ("made", "passing"),
    [
        ([A, SEND], {"strict", "unordered", "subset", "superset"}),
        ([SEND, A], {"unordered", "subset", "superset"}),
        ([A], {"subset"}),
        ([A, SEND, SEND], {"superset"}),
        ([A, B], set()),
        ([], {"subset"}),
    ],
)
def test_calls_are_matched_in_four_ways(made, passing):
    ways = ("strict", "unordered", "subset", "superset")

    assert {way for way in ways if match([A, SEND], made, match=way).passed} == passing


@pytest.mark.parametrize(
    ("expected", "given", "arguments", "passes"),
    [
        ({"n": 1}, {"n": 1.0}, "exact", True),
        ({"n": 1}, {"n": True}, "exact", False),
        ({"n": 1}, {"n": 2}, "ignored", True),
        ({"n": 1}, {"n": 1, "m": 2}, "exact", False),
        ({"properties": {"n": {"minimum": 3}}}, {"n": 3}, "schema", True),
        ({"properties": {"n": {"minimum": 3}}}, {"n": 2}, "schema", False),
        (None, {"n": 2}, "exact", True),
    ],
)
def test_arguments_are_compared_as_set(expected, given, arguments, passes):
    result = match([("t", expected)], [("t", given)], arguments=arguments)

    assert result.passed is passes


def test_a_schema_that_fits_several_calls_leaves_each_its_own():
    any_query = ("find", {"required": ["q"]})
    only_a = ("find", {"properties": {"q": {"const": "a"}}, "required": ["q"]})

    result = match([any_query, only_a], [A, B], match="unordered", arguments="schema")
    assert result.passed, result.explanation


def test_a_broken_schema_is_not_scored():
    assert match([("t", {"type": 5})], [("t", {})], arguments="schema").problem


def test_parse_errors_are_no_calls_and_failed_ones_may_be_left_out():
    steps = [
        make_step("_Exception", "?", failed=True),
        make_step("find", {"q": "a"}, failed=True, status="failed"),
        make_step("find", {"q": "a"}),
    ]
    ask = {"record": make_record(*steps), "example": make_expected(A)}

    assert score("tool-calls", "", **ask, skip_failed=True).passed
    assert "Calls expected: 1, made: 2." in score("tool-calls", "", **ask).explanation


def test_no_expected_calls_means_that_there_must_be_none():
    assert match([], []).passed
    assert not match([], [A]).passed


RULED = make_record(
    make_step("look"),
    make_step("send"),
    make_step("log", failed=True),
    make_step("send"),
)


@pytest.mark.parametrize(
    ("rules", "value"),
    [
        ({"must_call": ["look"]}, 1),
        ({"must_call": ["log"]}, 0),
        ({"must_call": ["look", "pay"]}, 0.5),
        ({"never_call": ["pay"]}, 1),
        ({"never_call": ["log"]}, 0),
        ({"at_most": {"send": 2, "look": 0}}, 0.5),
        ({"in_order": [{"first": "look", "then": "send"}]}, 1),
        ({"in_order": [{"first": "send", "then": "look"}]}, 0),
        ({"in_order": [{"first": "log", "then": "pay"}]}, 1),
        ({"in_order": [{"first": "log", "then": "send"}]}, 0),
        ({"most_calls": 4}, 1),
        ({"most_calls": 3, "must_call": ["look"]}, 0.5),
    ],
)
def test_tool_rules_count_what_holds(rules, value):
    result = score("tool-rules", "", record=RULED, **rules)

    assert (result.value, result.passed) == (value, value == 1)
    assert bool(result.explanation) is (value < 1)


@pytest.mark.parametrize(
    "rules",
    [{}, {"at_most": {"a": -1}}, {"must_call": ["a"], "never_call": ["a"]}],
)
def test_impossible_rules_are_refused(rules):
    assert validate_evaluator_config("tool-rules", rules)


USED = EvaluationRecord(
    input_tokens=900, output_tokens=100, cost=0.5, rounds=3, seconds=2.5, model_calls=4
)


@pytest.mark.parametrize(
    ("limits", "value"),
    [
        ({"tokens": 1000}, 1),
        ({"tokens": 999}, 0),
        ({"cost": 0.5, "rounds": 2}, 0.5),
        ({"seconds": 2.4}, 0),
        ({"model_calls": 4}, 1),
    ],
)
def test_limits_count_what_is_kept(limits, value):
    result = score("limits", "", record=USED, **limits)

    assert (result.value, result.passed) == (value, value == 1)


def test_what_was_not_measured_is_not_scored():
    assert "first_token" in score("limits", "", record=USED, first_token=1).problem
    assert validate_evaluator_config("limits", {})


def test_failed_runs_are_still_held_to_rules():
    record = EvaluationRecord(status="failed", steps=RULED.steps)
    example = EvaluationExample()

    assert score(
        "tool-rules", "", record=record, example=example, never_call=["pay"]
    ).passed
