"""Byte order marks, zero-width and no-break spaces in the replies of each text kind."""

import pytest

from tests.engine.make import drive, make_spec, make_tool

CALLS = {
    "react": "Action: search{after}\nAction Input: Rome",
    "react-json": '{{"action": "search{after}", "action_input": "Rome"}}',
    "json-chat": '{{"action": "search{after}", "action_input": "Rome"}}',
    "structured-chat": '{{"action": "search{after}", "action_input": "Rome"}}',
    "conversational-chat": '{{"action": "search{after}", "action_input": "Rome"}}',
    "xml": "<tool>search{after}</tool><tool_input>Rome</tool_input>",
    "conversational": "Action: search{after}\nAction Input: Rome",
    "self-ask": "Follow up: Rome",
    "react-docstore": "Action: Search{after}[Rome]",
}
JSON_ANSWER = '{"action": "Final Answer", "action_input": "Sunny"}'
ANSWERS = {
    "react": "Final Answer: Sunny",
    "react-json": "Final Answer: Sunny",
    "json-chat": JSON_ANSWER,
    "structured-chat": JSON_ANSWER,
    "conversational-chat": JSON_ANSWER,
    "xml": "<final_answer>Sunny</final_answer>",
    "conversational": "AI: Sunny",
    "self-ask": "So the final answer is: Sunny",
    "react-docstore": "Action: Finish[Sunny]",
}
CHARACTERS = {"mark": "\ufeff", "zero-width": "\u200b", "no-break": "\xa0"}


def driven(kind, *replies):
    names = ("Search", "Lookup") if kind == "react-docstore" else ("search",)
    return drive(make_spec(kind, tools=map(make_tool, names)), [*replies])


@pytest.mark.parametrize("character", CHARACTERS.values(), ids=CHARACTERS)
@pytest.mark.parametrize("kind", CALLS)
def test_a_reply_that_begins_with_one_is_followed(kind, character):
    call = CALLS[kind].format(after="")

    run = driven(kind, character + call, character + ANSWERS[kind])

    ((tool, given, _),) = run.steps
    assert (tool.lower(), given) == ("search", "Rome")
    assert run.result.output == "Sunny"


@pytest.mark.parametrize("character", CHARACTERS.values(), ids=CHARACTERS)
@pytest.mark.parametrize("kind", [kind for kind in CALLS if kind != "self-ask"])
def test_a_tool_whose_name_ends_with_one_is_found(kind, character):
    run = driven(kind, CALLS[kind].format(after=character), ANSWERS[kind])

    ((tool, given, observation),) = run.steps
    assert (tool.lower(), given) == ("search", "Rome")
    assert observation == "echo: Rome"
