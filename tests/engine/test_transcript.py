"""Where things stand in a request: prompt, turns, rounds."""

import pytest

from runs.engine.effects import CallModel
from runs.engine.kinds.registry import AGENT_KINDS
from runs.engine.types import HistoryTurn, PromptMessage, PromptSpec
from tests.engine.make import ACT, END, drive, make_reply, make_spec, make_tool

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
TURNS = (HistoryTurn(question="q1", answer="a1"), HistoryTurn(question="q2"))


def prompt(*pairs):
    return PromptSpec(
        messages=tuple(PromptMessage(role=role, template=text) for role, text in pairs)
    )


def messages_of(driven, number=-1):
    requests = [e.request for e in driven.effects if isinstance(e, CallModel)]
    return [(message.role, message.text) for message in requests[number].messages]


def test_a_text_prompt_is_one_message():
    spec = make_spec(
        prompt=PromptSpec(template="{input}|{tool_names}|{agent_scratchpad}")
    )

    driven = drive(spec, [ACT, END])

    assert messages_of(driven, 0) == [("user", "q|echo|")]
    assert messages_of(driven) == [("user", f"q|echo|{ACT}\nObservation: echo: x\n")]


def test_tools_are_described_with_what_they_take():
    tools = [
        make_tool("a", description="First."),
        make_tool("b", args_schema={"type": "object"}),
        make_tool("c", args_schema=CITY),
        make_tool("d", args_schema={**CITY, "required": []}),
    ]
    spec = make_spec(
        tools=tools, prompt=PromptSpec(template="{tools}{agent_scratchpad}")
    )

    text = messages_of(drive(spec, [END]))[0][1]

    fields = '{"city": {"type": "string"}}'
    assert text.splitlines() == [
        "a: First.",
        "b (takes no input)",
        f"c (input: a JSON object with {fields}; required: city)",
        f"d (input: a JSON object with {fields})",
    ]


def test_partials_fill_their_variables():
    spec = make_spec(
        prompt=PromptSpec(
            template="{day} {input} {agent_scratchpad}", partials={"day": "Mon"}
        )
    )

    assert messages_of(drive(spec, [END])) == [("user", "Mon q ")]


def test_the_classic_react_prompt_runs_unchanged():
    template = (
        "Answer the question.\n\n{tools}\n\nAction: one of [{tool_names}]\n\n"
        "Question: {input}\nThought:{agent_scratchpad}"
    )

    driven = drive(make_spec(prompt=PromptSpec(template=template)), [ACT, END])

    assert messages_of(driven)[0][1].endswith(
        f"Thought:{ACT}\nObservation: echo: x\nThought:"
    )


def test_earlier_turns_stand_before_the_question():
    spec = make_spec(
        prompt=prompt(("system", "s"), ("user", "{input}{agent_scratchpad}"))
    )

    assert messages_of(drive(spec, [END], turns=TURNS)) == [
        ("system", "s"),
        ("user", "q1"),
        ("assistant", "a1"),
        ("user", "q2"),
        ("assistant", "(There was no answer to this: the run was stopped.)"),
        ("user", "q"),
    ]


def test_earlier_turns_stand_where_a_message_says_so():
    spec = make_spec(
        prompt=prompt(("user", "{input}{agent_scratchpad}"), ("user", "{chat_history}"))
    )

    assert messages_of(drive(spec, [END], turns=TURNS[:1])) == [
        ("user", "q"),
        ("user", "q1"),
        ("assistant", "a1"),
    ]


def test_earlier_turns_are_lines_inside_a_text():
    spec = make_spec(
        prompt=PromptSpec(template="{chat_history}|{input}{agent_scratchpad}")
    )

    assert messages_of(drive(spec, [END], turns=TURNS[:1])) == [
        ("user", "Human: q1\nAI: a1|q")
    ]


def test_earlier_turns_come_last_where_no_message_is_the_persons():
    spec = make_spec(prompt=prompt(("system", "{input}{agent_scratchpad}")))

    assert messages_of(drive(spec, [END], turns=TURNS[:1]))[1:] == [
        ("user", "q1"),
        ("assistant", "a1"),
    ]


def test_rounds_stand_where_a_message_says_so():
    spec = make_spec(
        "tool-calling",
        prompt=prompt(
            ("user", "{input}"), ("user", "{agent_scratchpad}"), ("system", "s")
        ),
    )

    roles = [
        role
        for role, _ in messages_of(drive(spec, [make_reply("", ("echo", {})), "x"]))
    ]

    assert roles == ["user", "assistant", "tool", "system"]


def test_a_message_that_is_empty_without_steps_is_left_out():
    spec = make_spec(prompt=prompt(("user", "{input}"), ("user", "{agent_scratchpad}")))

    driven = drive(spec, [ACT, END])

    assert messages_of(driven, 0) == [("user", "q")]
    assert len(messages_of(driven)) == 2


def test_a_text_prompt_with_a_scratchpad_does_for_function_calls_too():
    spec = make_spec(
        "tool-calling", prompt=PromptSpec(template="{input}{agent_scratchpad}")
    )

    messages = messages_of(drive(spec, [make_reply("", ("echo", {})), "x"]))

    assert [role for role, _ in messages] == ["user", "assistant", "tool"]


def test_results_in_a_chat_follow_the_models_own_words():
    call = '{"action": "echo", "action_input": "x"}'
    end = '{"action": "Final Answer", "action_input": "y"}'

    messages = messages_of(drive(make_spec("json-chat"), [call, "", end]))

    assert [role for role, _ in messages] == [
        "system",
        *("user", "assistant", "user"),
        "user",
    ]
    assert messages[2] == ("assistant", call)
    assert messages[3][1].startswith("Result:\necho: x\n\n")


def test_only_kinds_of_function_calls_send_tools():
    sent = {
        kind: next(e.request.tools for e in drive(make_spec(kind), ["x"] * 9).effects)
        for kind in ("react", "tool-calling")
    }

    assert sent["react"] == ()
    assert [tool.name for tool in sent["tool-calling"]] == ["echo"]


@pytest.mark.parametrize("kind", sorted(AGENT_KINDS))
def test_every_kind_is_described_and_shows_rounds_in_one_way(kind):
    made = AGENT_KINDS[kind]

    assert made.name == kind
    assert made.summary.endswith(".")
    assert (made.as_text is None) != (made.as_messages is None)


REACT = "Question: {input}\nThought:{agent_scratchpad}"


def test_each_round_ends_with_the_label_that_the_prompt_ends_with():
    spec = make_spec(prompt=PromptSpec(template=REACT))

    driven = drive(spec, [f"I look.\n{ACT}", f"Thought: Again.\n{ACT}", END])

    first = f"Question: q\nThought:I look.\n{ACT}\nObservation: echo: x\nThought:"
    assert messages_of(driven, 1) == [("user", first)]
    second = f"{first} Again.\n{ACT}\nObservation: echo: x\nThought:"
    assert messages_of(driven, 2) == [("user", second)]


def test_a_prompt_without_a_label_shows_rounds_as_they_are():
    spec = make_spec(prompt=PromptSpec(template="{input}\n{agent_scratchpad}"))

    driven = drive(spec, [ACT, END])

    assert messages_of(driven) == [("user", f"q\n{ACT}\nObservation: echo: x\n")]
