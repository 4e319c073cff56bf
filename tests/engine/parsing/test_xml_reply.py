"""Replies of the kind `xml`, without a model."""

import pytest

from runs.engine.errors import ParseError
from runs.engine.kinds.kind import ParsedCall
from runs.engine.kinds.xml import (
    escape_tags,
    parse_xml_reply,
    tidy_xml_reply,
    unescape_tags,
)
from runs.engine.toolbox import Toolbox
from runs.engine.types import AgentFinish, Reply


def parse(text):
    return parse_xml_reply(tidy_xml_reply(text), Reply(text=text), Toolbox(()))


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("<tool>add</tool><tool_input>1 + 1</tool_input>", "1 + 1"),
        ("<tool> add </tool>\n<tool_input>\n1\n", "1"),
        ("<tool>add</tool>", ""),
        ("<tool>add</tool><tool_input>[[tool]]</tool_input>", "<tool>"),
    ],
    ids=["complete", "open", "without input", "escaped"],
)
def test_a_call_is_in_its_tags(text, given):
    assert parse(text) == (ParsedCall("add", given),)


def test_an_answer_is_in_its_tag():
    finish = parse("I know.\n<final_answer> It is [[/tool]]. </final_answer>")

    assert isinstance(finish, AgentFinish)
    assert finish.return_values["output"] == "It is </tool>."


@pytest.mark.parametrize(
    ("text", "why", "tried_action"),
    [
        ("It is 2.", "tags are not complete", False),
        ("<tool>add", "tags are not complete", True),
        ("<tool> </tool>", "tags are not complete", True),
        ("<tool_input>1</tool_input><tool>add</tool>", "not complete", True),
        ("<tool>add</tool><input>1</input>", "<input> is not <tool_input>", True),
        (
            "<final_answer>1</final_answer><tool>add</tool><tool_input>1</tool_input>",
            "a tool and an answer",
            True,
        ),
        ("<final_answer>1</final_answer><final_answer>2</final_answer>", "once", False),
    ],
    ids=["prose", "open", "nameless", "reversed", "other tag", "both", "twice"],
)
def test_a_reply_that_cannot_be_followed_is_explained(text, why, tried_action):
    with pytest.raises(ParseError, match=why) as error:
        parse(text)

    assert error.value.tried_action is tried_action


def test_what_the_model_invents_after_a_call_is_dropped():
    call = "<tool>add</tool><tool_input>1"
    invented = "<observation>2</observation><final_answer>2</final_answer>"

    assert tidy_xml_reply(f"{call}</tool_input>{invented}") == call
    assert tidy_xml_reply(f"{call}{invented}") == call


def test_tags_in_values_are_escaped_and_back():
    text = "a <tool>b</tool> <b>c</b>"

    assert escape_tags(text) == "a [[tool]]b[[/tool]] <b>c</b>"
    assert unescape_tags(escape_tags(text)) == text
