"""What holds for every reply there could be."""

import json
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runs.engine.effects import ModelCallFailed, ModelReplied, ToolsFinished
from runs.engine.errors import ParseError
from runs.engine.kinds.kind import ParsedCall
from runs.engine.kinds.registry import AGENT_KINDS
from runs.engine.parsing.clean import clean_json, clean_text
from runs.engine.toolbox import Toolbox
from runs.engine.types import AgentFinish, AgentSpec, LoopGuard, Reply, ToolCall
from tests.engine.make import drive, make_spec, make_tool

INTEGERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
}
TOOLS = (
    make_tool("echo"),
    make_tool("ping", args_schema={"type": "object"}),
    make_tool("add", args_schema=INTEGERS),
)
PIECES = [
    *("Action:", "Action Input:", "Final Answer:", "Thought:", "Observation:", "AI:"),
    *("**", "`", '"', "'", "\\", "[", "]", "{", "}", ":", "：", ",", "\n", "\r\n", " "),
    *(
        "echo",
        "ping",
        "add",
        "Finish",
        "1",
        "null",
        "x",
        "é",
        "\x00",
        "\ud800",
        "\u2028",
    ),
    *("<think>", "</think>", "<tool>", "</tool>", "<tool_input>", "</tool_input>"),
    *("<final_answer>", "</final_answer>", "[[tool]]", "```", "```json\n", "\n```"),
    *('{"action": "echo", "action_input": "x"}', '{"action": ', '"Final Answer"'),
    *(
        '"action_input": ',
        '{"a": 1, "b": 2}',
        '"}',
        "Follow up:",
        "Intermediate answer:",
    ),
    *("So the final answer is:", "NaN", "1e999", "9" * 5000, "[" * 1100),
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=14).map(
    "".join
)
CALLS = st.builds(
    ToolCall,
    id=st.sampled_from(["c1", "c2", ""]),
    name=st.sampled_from(["echo", "ping", "add", "fly", ""]),
    arguments=st.sampled_from(['{"a": 1}', '{"a": "1", "b": 2}', "", "null"]) | TEXTS,
)
REPLIES = st.builds(
    Reply, text=TEXTS, tool_calls=st.lists(CALLS, max_size=3).map(tuple)
)
OPTIONS = st.fixed_dictionaries(
    {
        "max_iterations": st.sampled_from([1, 3, 8]),
        "early_stopping_method": st.sampled_from(["force", "generate"]),
        "handle_parsing_errors": st.sampled_from([True, False, "Again."]),
        "trim_intermediate_steps": st.sampled_from([-1, 1]),
        "loop_guard": st.sampled_from([None, LoopGuard(hint=1, stop=2)]),
        "context_tokens": st.sampled_from([None, 600]),
        "context_method": st.sampled_from(["drop", "summary"]),
        "output_schema": st.sampled_from([None, {"type": "object"}]),
    }
)
KIND = st.sampled_from(sorted(AGENT_KINDS))
SLOW = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow]
)


def spec_of(kind, **options):
    tools = TOOLS[:1] if kind == "self-ask" else TOOLS
    return make_spec(kind, tools=tools, **options)


def read(kind, text, calls=()):
    made = AGENT_KINDS[kind]
    reply = Reply(text=text, tool_calls=calls)
    return made.parse_reply(made.tidy(text), reply, Toolbox(TOOLS))


def script(replies):
    """Enough replies for any run: those given, then a model that is gone."""
    return [*replies, *[ModelCallFailed("script", "No reply left.")] * 20]


@SLOW
@given(kind=KIND, reply=REPLIES)
def test_reading_gives_calls_or_an_end_or_the_parse_error(kind, reply):
    with suppress(ParseError):
        decision = read(kind, reply.text, reply.tool_calls)

        if not isinstance(decision, AgentFinish):
            assert decision
            assert all(isinstance(call, ParsedCall) for call in decision)


@SLOW
@given(kind=KIND, text=TEXTS)
def test_tidying_twice_changes_nothing_but_fences(kind, text):
    tidy = AGENT_KINDS[kind].tidy
    once = tidy(clean_text(text))

    assert len(once) <= len(text)
    assert len(tidy(once)) <= len(once)


@SLOW
@given(kind=KIND, replies=st.lists(REPLIES, max_size=6), options=OPTIONS)
@pytest.mark.slow
def test_every_run_ends_and_says_how(kind, replies, options):
    driven = drive(spec_of(kind, **options), script(replies))

    result = driven.result
    assert (result.status == "failed") == (result.error is not None)
    assert (result.status == "limit_reached") == (result.stop_reason is not None)


@SLOW
@given(kind=KIND, replies=st.lists(REPLIES, max_size=6), options=OPTIONS)
@pytest.mark.slow
def test_replaying_a_record_gives_the_same_requests_byte_for_byte(
    kind, replies, options
):
    spec = spec_of(kind, **options)
    first = drive(spec, script(replies))

    again = drive(spec, [], recorded=first.outcomes)

    assert again.digests == first.digests
    assert again.requests == first.requests
    assert again.result == first.result


def stored(outcome):
    """The outcome as a store gives it back: cleaned, and through JSON."""
    if not isinstance(outcome, ModelReplied):
        return outcome
    cleaned = json.loads(json.dumps(clean_json(outcome.reply.model_dump())))
    return ModelReplied(Reply.model_validate(cleaned), outcome.elapsed)


@SLOW
@given(
    kind=KIND,
    replies=st.lists(REPLIES, max_size=5),
    options=OPTIONS,
    share=st.floats(min_value=0, max_value=1),
)
@pytest.mark.slow
def test_resuming_after_any_prefix_gives_the_same_end(kind, replies, options, share):
    spec = spec_of(kind, **options)
    whole = drive(spec, script(replies))
    done = whole.outcomes[: round(share * len(whole.outcomes))]
    asked = sum(not isinstance(outcome, ToolsFinished) for outcome in done)

    again = AgentSpec.model_validate_json(spec.model_dump_json())
    resumed = drive(again, script(replies)[asked:], recorded=[*map(stored, done)])

    assert resumed.result == whole.result
    assert resumed.steps == whole.steps
    assert resumed.digests == whole.digests


HOSTILE = {
    "spaces": " ",
    "newlines": "\n",
    "braces": "{",
    "brackets": "[",
    "open objects": '{"',
    "objects": '{"a":1}',
    "nested objects": '{"a":',
    "nested lists": '[{"a":',
    "labels": "Action:",
    "label lines": "Action:\n",
    "inputs": "Action Input: x\n",
    "answers": "Final Answer: ",
    "answer lines": "Final Answer:\n",
    "words of labels": "action ",
    "actions in a line": "x Action: y ",
    "label and spaces": "Action" + " " * 50,
    "digits": "Action 1 1 1",
    "number": "9",
    "stars": "*",
    "quotes": '"',
    "escapes": "\\",
    "escaped quotes": '\\"',
    "backticks": "`",
    "fences": "```\n",
    "fence lines": "\n```json",
    "think blocks": "<think></think>",
    "open think": "<think>",
    "tools": "<tool>",
    "tool pairs": "<tool>a</tool>",
    "answers in tags": "<final_answer>",
    "own tags": "[[tool]]",
    "questions": "Follow up: ",
    "question lines": "Follow up:\n",
    "final markers": "So the final answer is:",
    "observations inside": "x Observation:",
    "intermediate inside": "x Intermediate answer:",
    "ai lines": "AI:\n",
    "wide letters": "é",
    "emoji": "👋",
}


INPUT = "Action: echo\nAction Input: "
LEADS = [(kind, "") for kind in sorted(AGENT_KINDS)] + [
    ("react", INPUT),
    ("react-json", INPUT),
]


@pytest.mark.parametrize(("kind", "lead"), LEADS)
def test_hostile_text_is_read_or_is_a_parse_error(kind, lead):
    for piece in HOSTILE.values():  # of a megabyte in tests/bench/limits
        with suppress(ParseError):
            read(kind, lead + piece * (10_000 // len(piece)))


def test_a_reply_of_two_hundred_calls_is_one_round():
    calls = tuple(ToolCall(id=f"c{n}", name="echo", arguments="{}") for n in range(200))

    driven = drive(
        make_spec("tool-calling", max_iterations=2),
        [ModelReplied(Reply(tool_calls=calls)), "done"],
    )

    assert driven.result.output == "done"
    assert len(driven.steps) == 200
