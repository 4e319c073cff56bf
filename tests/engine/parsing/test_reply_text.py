"""The first steps of reading a reply: reasoning, quotes, numbers."""

import re

import pytest

from runs.engine.parsing.reply_text import decode_json, strip_thinking, unwrap_input

LABEL = re.compile("Action:|Final Answer:")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        pytest.param("<think>a</think>b", "b", id="block"),
        pytest.param("<Think depth='2'>a</THINK>\nb", "b", id="case and attributes"),
        pytest.param("\ufeff<think>a</think>b", "b", id="byte order mark"),
        pytest.param("<think>a</think> <think>b</think>c", "c", id="two blocks"),
        pytest.param("<think>a", "", id="never closed"),
        pytest.param("a\n</think>\nb", "b", id="closing tag alone"),
        pytest.param("a</think></think>b", "b", id="two closing tags"),
        pytest.param("a <think>b</think> c", "a <think>b</think> c", id="inside"),
        pytest.param("no tag", "no tag", id="none"),
    ],
)
def test_reasoning_is_dropped(text, left):
    assert strip_thinking(text) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Action: x\n</think>\nAction: y", "Action: y"),
        ("a</think>b</think>\nFinal Answer: c", "Final Answer: c"),
        ("a</think>\nFinal Answer: the tag </think>", "Final Answer: the tag </think>"),
        ("Action: x\n</think>", ""),
    ],
)
def test_reasoning_ends_before_the_first_label_behind_it(text, left):
    assert strip_thinking(text, LABEL) == left


@pytest.mark.parametrize("pair", ["“”", "‘’", "「」", '""', "''"])
def test_one_pair_of_quotes_around_an_input_is_dropped(pair):
    assert unwrap_input(f"{pair[0]}北京{pair[1]}") == "北京"


@pytest.mark.parametrize("text", ["“a” = “b”", "“a", "“a‘"])
def test_other_typographic_quotes_stay(text):
    assert unwrap_input(text) == text


@pytest.mark.parametrize("text", ["1e400", "-1e999", '{"a": [1e400]}'])
def test_a_number_too_large_for_a_float_is_refused(text):
    with pytest.raises(ValueError, match="too large"):
        decode_json(text)
