"""Tests of the Chat Completions format against what servers really send."""

import json
from typing import Any

import pytest

from runs.engine.types import Reply, Usage
from runs.llm.chat_completions import (
    build_chat_message,
    get_argument_schema,
    parse_chat_reply,
    parse_chat_stream,
)
from runs.llm.wire import ErrorResponse, NotAReply, StreamCutOff
from tools.net.server_sent_events import ServerSentEvent
from tools.spec import ToolSpec


def whole(message: Any, **more: Any) -> Reply:
    """Read an answer with one message."""
    choice = {"message": message, "finish_reason": "stop"}
    return parse_chat_reply(json.dumps({"choices": [choice], **more}).encode())


def streamed(*deltas: Any, end: str | None = "stop", **more: Any) -> Reply:
    """Read a stream with these deltas."""
    chunks = [{"choices": [{"delta": one}]} for one in deltas]
    if end is not None:
        chunks.append({"choices": [{"delta": {}, "finish_reason": end}], **more})
    events = [ServerSentEvent("", json.dumps(one).encode()) for one in chunks]
    return parse_chat_stream(events, lambda _: None)


CONTENTS = {
    "text": ({"content": "hi"}, "hi", ""),
    "null": ({"content": None}, "", ""),
    "missing": ({}, "", ""),
    "number": ({"content": 7}, "", ""),
    "parts": (
        {"content": [{"type": "text", "text": "h"}, 7, {"type": "text"}]},
        "h",
        "",
    ),
    "refusal": ({"content": None, "refusal": "no"}, "no", ""),
    "deepseek": ({"content": "hi", "reasoning_content": "so"}, "hi", "so"),
    "openrouter": ({"content": "hi", "reasoning": "so"}, "hi", "so"),
    "mistral": (
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "so"}]},
                {"type": "text", "text": "hi"},
            ]
        },
        "hi",
        "so",
    ),
}


@pytest.mark.parametrize("read", [whole, streamed], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("message", "text", "reasoning"), CONTENTS.values(), ids=CONTENTS.keys()
)
def test_content_comes_in_many_shapes(message, text, reasoning, read):
    reply = read(message)

    assert (reply.text, reply.reasoning) == (text, reasoning)


def fragment(index: Any = None, **more: Any) -> dict[str, Any]:
    """Return a delta with one fragment of a call."""
    found: dict[str, Any] = {}
    if index is not None:
        found["index"] = index
    if "id" in more:
        found["id"] = more.pop("id")
    if more:
        found["function"] = more
    return {"tool_calls": [found]}


FRAGMENTS = {
    "by index": [
        fragment(0, id="a", name="x", arguments=""),
        fragment(1, id="b", name="y", arguments="{"),
        fragment(0, arguments="{}"),
        fragment(1, arguments="}"),
    ],
    "all with index 0": [
        fragment(0, id="a", name="x", arguments="{}"),
        fragment(0, id="b", name="y", arguments="{}"),
    ],
    "without index": [
        fragment(id="a", name="x", arguments="{"),
        fragment(arguments="}"),
        fragment(id="b", name="y", arguments="{}"),
    ],
    "without index and id": [
        fragment(name="x", arguments="{}"),
        fragment(name="y", arguments="{"),
        fragment(arguments="}"),
    ],
    "name in pieces": [
        fragment(0, id="a", name="x", arguments="{}"),
        fragment(1, id="b", name=""),
        fragment(1, name="y"),
        fragment(1, name="y", arguments="{}"),
    ],
    "id again and again": [
        fragment(0, id="a", name="x", arguments="{"),
        fragment(0, id="a", arguments="}"),
        fragment(1, id="b", name="y", arguments="{}"),
    ],
    "arguments as an object": [
        fragment(0, id="a", name="x", arguments={}),
        fragment(1, id="b", name="y", arguments={}),
    ],
    "nonsense between": [
        fragment(0, id="a", name="x", arguments="{}"),
        {"tool_calls": [7, {"index": 0}, {"index": 0, "function": 3}]},
        {"tool_calls": "none"},
        fragment(1, id="b", name="y", arguments="{}"),
    ],
}


@pytest.mark.parametrize("deltas", FRAGMENTS.values(), ids=FRAGMENTS.keys())
def test_fragments_come_in_many_ways(deltas):
    reply = streamed(*deltas)

    assert [(one.name, one.arguments) for one in reply.tool_calls] == [
        ("x", "{}"),
        ("y", "{}"),
    ]
    assert len({one.id for one in reply.tool_calls}) == 2


def test_the_old_function_call_is_a_call():
    reply = whole({"function_call": {"name": "x", "arguments": "{}"}})

    assert [(one.id, one.name) for one in reply.tool_calls] == [("call_0", "x")]


def test_calls_without_a_function_are_left_out():
    message = {"tool_calls": [{"id": "a"}, {"function": {"name": "x"}}, 7]}

    assert [one.name for one in whole(message).tool_calls] == ["x"]


def test_made_up_ids_do_not_collide_with_real_ones():
    calls = [{"id": one, "function": {"name": "x"}} for one in ("", "call_0", "call_0")]

    found = [one.id for one in whole({"tool_calls": calls}).tool_calls]
    assert len(set(found)) == 3
    assert found == [one.id for one in whole({"tool_calls": calls}).tool_calls]


USAGES = {
    "openai": {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    },
    "deepseek": {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "prompt_cache_hit_tokens": 4,
        "completion_tokens_details": {"reasoning_tokens": 2.0},
    },
}


@pytest.mark.parametrize("usage", USAGES.values(), ids=USAGES.keys())
def test_usage_counts_cached_and_reasoning_tokens(usage):
    expected = Usage(
        input_tokens=9, output_tokens=5, cached_tokens=4, reasoning_tokens=2
    )

    assert whole({"content": "hi"}, usage=usage).usage == expected
    assert streamed({"content": "hi"}, usage=usage).usage == expected


def test_invalid_usage_is_ignored():
    nonsense = {"prompt_tokens": -1, "completion_tokens": "7"}

    assert whole({}, usage=nonsense).usage == Usage()
    assert whole({}, usage=[]).usage is None


CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "add", "arguments": '{"a": 1}'},
}
REDUNDANT = [
    {"role": "assistant", "content": "hi"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "assistant", "content": "hi", "tool_calls": [CALL, {**CALL, "id": "c2"}]},
]


@pytest.mark.parametrize("message", REDUNDANT, ids=["text", "call", "both"])
def test_a_message_that_says_no_more_than_the_reply_is_not_kept(message):
    assert build_chat_message(whole(message)) == message
    assert whole(message).native is None
    indexed = [
        {"index": n, **one} for n, one in enumerate(message.get("tool_calls", ()))
    ]
    assert streamed({**message, "tool_calls": indexed}) == whole(message)


@pytest.mark.parametrize(
    "more",
    [
        {"refusal": None},
        {"reasoning_content": "so"},
        {"content": [{"type": "text", "text": "hi"}]},
        {"tool_calls": [{**CALL, "extra_content": {"signature": "s"}}]},
        {"tool_calls": [{**CALL, "id": ""}]},
    ],
    ids=["null", "reasoning", "parts", "signature", "made-up id"],
)
def test_a_message_that_says_more_is_kept_as_it_is(more):
    message = {"role": "assistant", "content": "hi", **more}

    assert whole(message).native == message


def test_unknown_fields_are_kept_in_the_native_message():
    reply = streamed(
        {"content": "hi", "audio": "a", "tags": [1], "extra": {"a": 1}, "n": 1},
        {"audio": "b", "tags": [2], "extra": {"b": 2}, "n": 2, "role": "assistant"},
    )

    assert reply.native is not None
    assert reply.native["audio"] == "ab"
    assert reply.native["tags"] == [1, 2]
    assert reply.native["extra"] == {"a": 1, "b": 2}
    assert reply.native["n"] == 2


@pytest.mark.parametrize(
    "answer",
    [
        {"choices": []},
        {"choices": None},
        {"choices": [None]},
        {"choices": [{}]},
        {"choices": [{"message": "hi"}]},
        {},
    ],
    ids=str,
)
def test_an_answer_without_a_message_is_no_reply(answer):
    with pytest.raises(NotAReply):
        parse_chat_reply(json.dumps(answer).encode())


@pytest.mark.parametrize(
    "error", [{"message": "Boom."}, "Boom."], ids=["object", "text"]
)
def test_an_error_object_in_place_of_a_reply_raises(error):
    with pytest.raises(ErrorResponse) as caught:
        parse_chat_reply(json.dumps({"error": error}).encode())
    assert caught.value.error == {"message": "Boom."}


def test_a_stream_without_an_end_is_cut_off():
    with pytest.raises(StreamCutOff):
        streamed({"content": "hi"}, end=None)


def test_done_ends_a_stream():
    events = [
        ServerSentEvent("", b'{"choices": [{"delta": {"content": "hi"}}]}'),
        ServerSentEvent("", b"[DONE]"),
    ]
    assert parse_chat_stream(events, lambda _: None).text == "hi"


def test_done_alone_is_not_a_reply():
    with pytest.raises(NotAReply, match="without choices"):
        parse_chat_stream([ServerSentEvent("", b"[DONE]")], lambda _: None)


def test_a_delta_that_is_not_an_object_is_ignored():
    assert streamed(7, None, {"content": "hi"}).text == "hi"


def test_a_schema_without_a_type_is_that_of_an_object():
    tool = ToolSpec(name="x", args_schema={"properties": {}})
    assert get_argument_schema(tool) == {"type": "object", "properties": {}}
