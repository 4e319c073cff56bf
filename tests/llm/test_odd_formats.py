"""Odd answers in the formats of Anthropic, Responses and Ollama."""

import json
from typing import Any

import pytest

from runs.engine.types import Message, ToolCall, Usage
from runs.llm import anthropic, ollama, responses
from runs.llm.chat_completions import encode_chat_messages
from runs.llm.errors import ModelCallError
from runs.llm.wire import ErrorResponse, NotAReply, StreamCutOff
from tests.fakes.model_server import model_server
from tests.llm.make import make_llm, make_request, soon

ODD_ARGUMENTS = ToolCall(id="c1", name="add", arguments="1 and 2")


def stream_of(module: Any) -> Any:
    """Return a reply in the making."""
    classes = {
        anthropic: anthropic.MessageStream,
        responses: responses.ResponseStream,
        ollama: ollama.OllamaStream,
    }
    return classes[module](lambda _: None)


def read(module: Any, *events: Any) -> Any:
    """Read events as a stream."""
    stream = stream_of(module)
    for one in events:
        stream.feed(json.dumps(one).encode())
    return stream.reply()


START = {"type": "message_start", "message": {"model": "m", "usage": None}}
STOP = {"type": "message_stop"}


def test_anthropic_adds_cached_tokens_to_the_input():
    usage = {
        "input_tokens": 1,
        "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 300,
        "output_tokens": 4,
    }
    expected = Usage(input_tokens=321, output_tokens=4, cached_tokens=20)

    assert anthropic.parse_message_usage(usage) == expected
    assert anthropic.parse_message_usage(None) is None


def test_anthropic_deltas_without_a_block_begin_one():
    delta = {"type": "text_delta", "text": "hi"}
    reply = read(
        anthropic,
        START,
        {"type": "content_block_start", "index": "x"},
        {"type": "content_block_delta", "index": None, "delta": delta},
        {"type": "content_block_delta", "index": 0, "delta": 7},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "new"}},
        {"type": "message_delta", "delta": None, "usage": 7},
        {"type": "brand_new"},
        STOP,
    )
    assert reply.text == "hi"


def test_anthropic_text_may_stand_in_the_start_of_a_block():
    block = {"type": "text", "text": "hi"}
    start = {"type": "content_block_start", "index": 0, "content_block": block}

    assert read(anthropic, {"type": "message_start"}, start, STOP).text == "hi"


@pytest.mark.parametrize(
    "error", [{"type": "error", "error": {"message": "x"}}, {"error": "x"}], ids=str
)
def test_anthropic_errors_in_a_stream_are_errors(error):
    with pytest.raises(ErrorResponse):
        read(anthropic, START, error)


@pytest.mark.parametrize(
    ("module", "events"),
    [
        (anthropic, [START]),
        (responses, [{"type": "response.created"}]),
        (ollama, [{"message": {"content": "hi"}}]),
    ],
    ids=["anthropic", "responses", "ollama"],
)
def test_a_stream_without_an_end_is_cut_off(module, events):
    with pytest.raises(StreamCutOff):
        read(module, *events)


@pytest.mark.parametrize("module", [anthropic, responses, ollama])
def test_a_stream_without_a_beginning_is_no_reply(module):
    with pytest.raises(NotAReply):
        read(module)


def test_anthropic_says_when_the_model_refuses():
    answer = {"content": [], "stop_reason": "refusal"}

    with pytest.raises(ModelCallError, match="refused to answer"):
        anthropic.raise_if_refused(anthropic.build_message_reply(answer))


def test_anthropic_without_content_is_no_reply():
    with pytest.raises(NotAReply):
        anthropic.build_message_reply({"content": "hi"})


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), ("{}", "{}"), ({"a": "é"}, '{"a":"é"}')], ids=str
)
def test_anthropic_inputs_become_texts(value, text):
    block = {"type": "tool_use", "id": "c", "name": "x", "input": value}

    assert (
        anthropic.build_message_reply({"content": [block]}).tool_calls[0].arguments
        == text
    )


def test_anthropic_turns_alternate():
    call = ToolCall(id="c1", name="add", arguments="{}")
    two = (call, ODD_ARGUMENTS)
    turns = anthropic.build_alternating_messages(
        (
            Message.from_text("system", "s"),
            Message.from_text("user", "one"),
            Message.from_text("user", "two"),
            Message.from_text("assistant", " "),
            Message(role="assistant", tool_calls=two, native={"content": "text"}),
            Message.from_text("tool", "", tool_call_id="c1"),
            Message.from_text("tool", "r2", tool_call_id="c2"),
        )
    )

    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert turns[1]["content"][1]["input"] == {"input": "1 and 2"}
    assert turns[2]["content"][0]["content"] == "(no output)"


def test_responses_may_leave_the_output_to_the_items():
    part = {"type": "output_text", "text": "hi"}
    item = {"type": "message", "content": [part, 7]}
    reply = read(
        responses,
        {"type": "response.created", "response": {}},
        {"type": "response.output_text.delta", "delta": ""},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.output_item.done", "item": None},
        {"type": "response.completed", "response": {}},
    )
    assert (reply.text, reply.usage) == ("hi", None)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "server_error", "message": "Boom."},
        {"error": {"message": "Boom."}},
        {"type": "response.failed", "response": {"error": {"message": "Boom."}}},
        {"type": "response.failed", "response": {"error": "Boom."}},
    ],
    ids=["event", "bare", "failed", "failed text"],
)
def test_responses_errors_are_errors(event):
    with pytest.raises(ErrorResponse) as caught:
        read(responses, event)
    assert caught.value.error["message"] == "Boom."


def test_responses_without_output_are_no_reply():
    with pytest.raises(NotAReply):
        responses.build_response_reply({"output": None})


def test_responses_know_the_filter():
    details = {"reason": "content_filter"}
    reply = responses.build_response_reply(
        {"output": [], "incomplete_details": details}
    )

    assert reply.finish_reason == "content_filter"


def test_responses_call_the_limit_by_their_own_name():
    request = make_request(parameters={"max_tokens": 5})

    assert (
        responses.build_responses_body(request, stream=False)["max_output_tokens"] == 5
    )


def test_ollama_calls_the_limit_by_its_own_name():
    parameters = {"max_tokens": 5, "think": True}
    body = json.loads(
        ollama.build_ollama_body(make_request(parameters=parameters), stream=False)
    )

    assert body["options"] == {"num_predict": 5}
    assert body["think"] is True


def test_ollama_arguments_may_be_missing_or_text():
    calls = [
        {"function": {"name": "x"}},
        {"function": {"name": "x", "arguments": "{}"}},
        {"function": 7},
        7,
    ]
    reply = read(ollama, {"message": {"tool_calls": calls}, "done": True})

    assert [one.arguments for one in reply.tool_calls] == ["{}", "{}", "{}"]


@pytest.mark.parametrize(
    ("line", "error"),
    [({"error": "Boom."}, ErrorResponse), ({"done": True}, NotAReply)],
    ids=["error", "no message"],
)
def test_ollama_lines_that_are_no_reply(line, error):
    with pytest.raises(error):
        read(ollama, line)


def test_ollama_tells_of_each_model_what_it_can():
    with model_server() as server:
        llm = make_llm(server.root, kind="ollama")
        card = llm.list_models(deadline=soon())[0]
        llm.close()

    assert (card.name, card.functions, card.context_tokens) == (
        "fake-large",
        True,
        4096,
    )


@pytest.mark.parametrize("message", [b"[]", b'{"model_info": 7, "capabilities": 7}'])
def test_ollama_models_are_listed_where_the_server_tells_nothing(message):
    async def silent(exchange):
        if exchange.request.method == "GET":
            await exchange.send_json({"models": [{"name": "a"}, {"name": 7}, 7]})
        else:
            await exchange.send(message)

    with model_server(faults={"silent": silent}) as server:
        llm = make_llm(server.root, kind="ollama", headers=(("X-Fault", "silent"),))
        (card,) = llm.list_models(deadline=soon())
        llm.close()

    assert (card.name, card.functions) == ("a", None)


def test_ollama_refuses_models_that_are_not_a_list():
    async def odd(exchange):
        await exchange.send_json({"models": 7})

    with model_server(faults={"odd": odd}) as server:
        llm = make_llm(server.root, kind="ollama", headers=(("X-Fault", "odd"),))
        with pytest.raises(ModelCallError, match="instead of its list of models"):
            llm.list_models(deadline=soon())
        llm.close()


@pytest.mark.parametrize("kind", ["anthropic", "responses", "ollama"])
def test_a_stream_asked_for_may_come_as_a_whole(kind):
    received: list[str] = []

    async def all_at_once(exchange):
        exchange.request.raw = exchange.request.raw.replace(
            b'"stream":true', b'"stream":false'
        )
        await exchange.answer()

    with model_server(faults={"whole": all_at_once}) as server:
        llm = make_llm(server.root, kind=kind)
        request = make_request(model="fault-whole")
        reply = llm.complete(request, deadline=soon(), on_text=received.append)
        llm.close()

    assert reply.text == "Hello from the fake."
    assert "".join(received) == reply.text


def test_gemini_messages_without_signatures_stay_as_they_are():
    call = ToolCall(id="c1", name="add", arguments="{}")
    native = {"tool_calls": [{"id": "c1", "extra_content": 7}, 3]}
    message = Message(role="assistant", tool_calls=(call,), native=native)

    assert encode_chat_messages([message])[0] is message.canonical


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_failed_response_without_an_error_is_not_an_empty_reply(status):
    whole = {"status": status, "output": [{"type": "message", "content": []}]}

    with pytest.raises(NotAReply, match=f"a {status} response without a reason"):
        responses.build_response_reply(whole)
    with pytest.raises(NotAReply):
        read(responses, {"type": "response.completed", "response": whole})


def test_reasoning_as_text_goes_back_to_a_responses_server():
    thought = {"type": "reasoning", "id": "rs_1", "content": [{"text": "So."}]}
    empty = {"type": "reasoning", "id": "rs_2", "summary": []}
    called = {"type": "function_call", "call_id": "c1", "name": "add"}
    message = Message(
        role="assistant",
        tool_calls=(ToolCall(id="c1", name="add", arguments="{}"),),
        native={"output": [thought, empty, called]},
    )

    body = responses.build_responses_body(make_request(message), stream=False)

    assert [item.get("id") for item in body["input"]] == ["rs_1", None]
    assert body["input"][0]["content"] == [{"text": "So."}]
