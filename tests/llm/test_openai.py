"""Tests of kind `openai` against a real server on loopback."""

import pytest

from runs.engine.types import Message
from runs.llm.errors import ModelCallError
from tests.fakes.model_server import model_server
from tests.llm.make import ADD, make_llm, make_request, soon


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_returns_the_text_the_server_wrote(stream):
    received: list[str] = []
    with model_server(script=["Hello there, you."]) as server:
        llm = make_llm(server.base_url)
        reply = llm.complete(
            make_request(stream=stream), deadline=soon(), on_text=received.append
        )
        llm.close()

    assert reply.text == "Hello there, you."
    assert reply.finish_reason == "stop"
    assert reply.usage is not None
    assert reply.usage.cached_tokens > 0
    assert received == (["Hello ", "there, ", "you."] if stream else [])


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_puts_parallel_calls_together(stream):
    calls = [
        {"id": "c1", "name": "add", "arguments": '{"a": 1, "b": 2}'},
        {"id": "c2", "name": "add", "arguments": '{"a": 30, "b": 4}'},
    ]
    with model_server(script=[{"tool_calls": calls, "reasoning": "so so"}]) as server:
        llm = make_llm(server.base_url)
        request = make_request(stream=stream, tools=(ADD,))
        reply = llm.complete(request, deadline=soon(), on_text=lambda _: None)
        llm.close()

    assert [call.model_dump() for call in reply.tool_calls] == calls
    assert reply.reasoning.strip() == "so so"
    assert reply.text == ""


def test_sends_key_tools_stop_words_and_parameters():
    with model_server() as server:
        llm = make_llm(server.base_url, headers=(("X-Team", "blue"),))
        request = make_request(
            Message.from_text("system", "Be brief."),
            "你好",
            tools=(ADD,),
            stop=("Observation:",),
            parameters={"temperature": 0, "model": "mine"},
        )
        llm.complete(request, deadline=soon())
        llm.close()
        sent = server.requests[0]

    assert sent.path == "/v1/chat/completions"
    assert sent.headers["authorization"] == "Bearer sk-secret-key"
    assert sent.headers["x-team"] == "blue"
    assert sent.body["model"] == "fake-large"
    assert sent.body["temperature"] == 0
    assert sent.body["stop"] == ["Observation:"]
    assert sent.body["messages"][1] == {"role": "user", "content": "你好"}
    assert sent.body["tools"][0]["function"]["name"] == "add"


def test_keeps_its_connection_between_calls():
    with model_server() as server:
        llm = make_llm(server.base_url)
        for _ in range(3):
            llm.complete(make_request(), deadline=soon(), on_text=lambda _: None)
        llm.close()

        assert server.connections == 1


def test_lists_the_models_of_the_server():
    with model_server() as server:
        llm = make_llm(server.base_url)
        cards = llm.list_models(deadline=soon())
        llm.close()

    assert [card.name for card in cards] == ["fake-large", "fake-small"]


def test_a_refused_connection_is_explained():
    llm = make_llm("http://127.0.0.1:1/v1")

    with pytest.raises(
        ModelCallError, match="No server answers at http://127.0.0.1:1/v1"
    ):
        llm.complete(make_request(), deadline=soon())
    llm.close()
