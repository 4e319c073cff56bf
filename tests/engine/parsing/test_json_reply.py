"""Replies of the kinds that write JSON, without a model."""

import pytest

from runs.engine.errors import ParseError
from runs.engine.kinds.json_actions import parse_json_reply
from runs.engine.kinds.kind import ParsedCall
from runs.engine.types import AgentFinish

CALL = '{"action": "add", "action_input": {"a": 1}}'
ANSWER = '{"action": "Final Answer", "action_input": "It is 1."}'
BROKEN = '{"action": "add", "action_input": {"a": '


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"I add.\n```json\n{CALL}\n```\nThen I look.",
        f"[{CALL}]",
        f"{CALL}\n{CALL.replace('1', '2')}",
    ],
    ids=["alone", "fence", "list", "two"],
)
def test_the_first_action_is_the_call(text):
    assert parse_json_reply(text) == (ParsedCall("add", {"a": 1}),)


def test_an_answer_keeps_the_reply():
    finish = parse_json_reply(f"I know.\n{ANSWER}")

    assert isinstance(finish, AgentFinish)
    assert finish.return_values["output"] == "It is 1."


def test_a_valid_answer_counts_beside_a_broken_action():
    finish = parse_json_reply(f"{BROKEN}\n```\n{ANSWER}")

    assert isinstance(finish, AgentFinish)
    assert finish.return_values["output"] == "It is 1."


@pytest.mark.parametrize(
    ("text", "why", "tried_action"),
    [
        ("  ", "The reply is empty", False),
        ("It is 1.", "holds no JSON object with an action", False),
        (BROKEN, "The JSON is not valid", True),
        ('{"action": 7, "action_input": 1}', "must be a tool's name", True),
        ('{"action": "add", "action_input": [1]}', "a text or an object", True),
        ('{"action": "add", "input": "1"}', "but 'input'", True),
        ('{"action": "Final Answer"}', "has no `action_input`", True),
        (f"{ANSWER}\n{CALL}", "both a final answer and an action", True),
    ],
    ids=["empty", "prose", "cut", "number", "list", "key", "answer", "both"],
)
def test_a_reply_that_cannot_be_followed_is_explained(text, why, tried_action):
    with pytest.raises(ParseError, match=why) as error:
        parse_json_reply(text)

    assert error.value.tried_action is tried_action


def test_a_label_ends_a_reply_only_where_the_kind_has_labels():
    text = "I know it.\nFinal Answer: It is 1."

    finish = parse_json_reply(text, label_ends=True)

    assert isinstance(finish, AgentFinish)
    assert finish.return_values["output"] == "It is 1."
    with pytest.raises(ParseError, match="no JSON object"):
        parse_json_reply(text)


def test_a_label_beside_an_action_is_refused():
    with pytest.raises(ParseError, match="both an action and a final answer"):
        parse_json_reply(f"Final Answer: 1\n{CALL}", label_ends=True)
