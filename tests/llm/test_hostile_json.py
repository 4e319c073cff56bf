"""Whatever JSON a server sends, reading it ends in a reply or a known error."""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runs.engine.types import Message, ModelRequest, Reply, ToolCall
from runs.llm import anthropic, ollama, responses
from runs.llm import chat_completions as chat
from runs.llm.base import Endpoint
from runs.llm.model_list import parse_model_list
from runs.llm.refusals import parse_refusal, parse_stream_refusal
from runs.llm.wire import (
    ErrorResponse,
    InvalidJson,
    NotAReply,
    StreamCutOff,
)
from tools.net.server_sent_events import ServerSentEvent

WORDS = [
    "choices",
    "message",
    "delta",
    "content",
    "text",
    "tool_calls",
    "function",
    "function_call",
    "name",
    "id",
    "index",
    "arguments",
    "reasoning_content",
    "reasoning",
    "refusal",
    "finish_reason",
    "usage",
    "prompt_tokens",
    "completion_tokens",
    "prompt_tokens_details",
    "completion_tokens_details",
    "cached_tokens",
    "model",
    "error",
    "code",
    "type",
    "status",
    "param",
    "detail",
    "output",
    "item",
    "call_id",
    "summary",
    "response",
    "incomplete_details",
    "reason",
    "encrypted_content",
    "content_block",
    "thinking",
    "signature",
    "input",
    "partial_json",
    "stop_reason",
    "message_start",
    "content_block_start",
    "content_block_delta",
    "message_delta",
    "message_stop",
    "tool_use",
    "output_text",
    "response.completed",
    "done",
    "done_reason",
    "prompt_eval_count",
    "data",
    "capabilities",
    "supported_parameters",
    "meta",
    "n_ctx",
    "input_tokens",
    "output_tokens",
    "extra_content",
    "model_info",
    "x.context_length",
    "tool_call_id",
    "response.output_item.done",
    "response.output_text.delta",
    "function_call",
    "error",
    "stop",
]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 600),
    st.floats(),
    st.sampled_from([*WORDS, "", "\0", "\ud800", "{}", '{"a": 1', "9" * 400]),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    ),
    max_leaves=25,
)
OBJECTS = st.dictionaries(st.sampled_from(WORDS), ANYTHING, max_size=6)
ENDS = (InvalidJson, NotAReply, ErrorResponse, StreamCutOff)


def shaped(form: str, value: Any) -> dict[str, Any]:
    """Return `value` where the format has its reply, so that reading gets that far."""
    shapes: dict[str, dict[str, Any]] = {
        "chat": {"choices": [{"message": value, "finish_reason": "stop"}]},
        "chat stream": {"choices": [{"delta": value, "finish_reason": "stop"}]},
        "messages": {"content": [value, value], "usage": value},
        "responses": {"output": [value, value], "usage": value},
        "responses stream": {"type": "response.completed", "response": value},
        "ollama": {"message": value, "done": True},
    }
    return shapes[form]


def read(form: str, raw: bytes) -> Reply:
    """Read `raw` in one of the formats."""
    stream: Any
    match form:
        case "chat":
            return chat.parse_chat_reply(raw)
        case "chat stream":
            return chat.parse_chat_stream(
                [ServerSentEvent("", raw), ServerSentEvent("", raw)], lambda _: None
            )
        case "messages":
            return anthropic.parse_message_body(raw)
        case "responses":
            return responses.build_response_reply(json.loads(raw))
        case "responses stream":
            stream = responses.ResponseStream(lambda _: None)
        case _:
            stream = ollama.OllamaStream(lambda _: None)
    stream.feed(raw)
    return stream.reply()


FORMS = ("chat", "chat stream", "messages", "responses", "responses stream", "ollama")


@pytest.mark.parametrize("form", FORMS)
@example(value={"tool_calls": True}, is_shaped=True)
@settings(max_examples=40, deadline=None)
@given(value=st.one_of(OBJECTS, ANYTHING), is_shaped=st.booleans())
def test_reading_ends_in_a_reply_or_a_known_error(form, value, is_shaped):
    message = shaped(form, value) if is_shaped or not isinstance(value, dict) else value
    try:
        reply = read(form, json.dumps(message).encode())
    except ENDS:
        return
    assert len({call.id for call in reply.tool_calls}) == len(reply.tool_calls)
    again = Message(
        role="assistant",
        content=(),
        tool_calls=reply.tool_calls or (ToolCall(id="a", name="b", arguments="{}"),),
        native=reply.native,
    )
    request = ModelRequest(messages=(again,))
    chat.encode_chat_messages([again])
    anthropic.build_messages_body(request, stream=True)
    responses.build_responses_body(request, stream=True)
    ollama.build_ollama_body(request, stream=True)


@settings(max_examples=40, deadline=None)
@given(events=st.lists(OBJECTS, max_size=6))
def test_a_stream_of_messages_ends_in_a_reply_or_a_known_error(events):
    stream = anthropic.MessageStream(lambda _: None)
    try:
        for one in ({"type": "message_start"}, *events, {"type": "message_stop"}):
            stream.feed(json.dumps(one).encode())
        stream.reply()
    except ENDS:
        return


@settings(max_examples=40, deadline=None)
@given(body=st.one_of(OBJECTS, ANYTHING), status=st.integers(300, 599))
def test_every_refusal_has_a_meaning(body, status):
    endpoint = Endpoint(kind="openai", base_url="http://there", key="k", slug="there")
    raw = json.dumps(body).encode()
    failed = parse_refusal(endpoint, status, raw, headers={}, model="m", address="a")
    assert str(failed)
    if isinstance(body, dict):
        assert str(parse_stream_refusal(endpoint, body, model="m"))


@settings(max_examples=40, deadline=None)
@given(value=OBJECTS)
def test_lists_of_models_are_read_or_refused(value):
    assert parse_model_list({"data": [value, {**value, "id": "a"}]})
    ollama.parse_model_details("a", value)
    try:
        parse_model_list(value)
    except InvalidJson:
        return
