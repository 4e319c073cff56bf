"""What holds for every kind of provider, each against a server of its format."""

import pytest

from runs.engine.types import Message, Reply, ToolCall
from runs.llm.base import LLM
from runs.llm.errors import ModelCallError
from tests.fakes.model_server import FakeServer, model_server
from tests.llm.make import ADD, make_llm, make_request, soon
from tools.errors import DeadlineExceeded
from tools.net.deadline import Deadline
from tools.spec import ToolSpec

KINDS = ("openai", "gemini", "responses", "anthropic", "ollama")
CALLS = [
    {"id": "c1", "name": "add", "arguments": '{"a": 1, "b": 2}'},
    {"id": "c2", "name": "add", "arguments": '{"a": 30, "b": 4}'},
]

every_kind = pytest.mark.parametrize("kind", KINDS)
both_ways = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


def connect(server: FakeServer, kind: str, **more: float) -> LLM:
    """Return a connection to the server under the address a person would enter."""
    return make_llm(server.root, kind=kind, **more)


def ask(kind: str, *said: object, stream: bool = True, **more: object) -> Reply:
    """Ask a server with the script `said` one question."""
    with model_server(script=said) as server:
        llm = connect(server, kind)
        request = make_request(stream=stream, **more)  # type: ignore[arg-type]  # forwards
        try:
            return llm.complete(request, deadline=soon(), on_text=lambda _: None)
        finally:
            llm.close()


@both_ways
@every_kind
def test_returns_text_reasoning_and_usage_apart(kind, stream):
    reply = ask(kind, {"content": "It is 4.", "reasoning": "2 and 2"}, stream=stream)

    assert reply.text == "It is 4."
    assert reply.reasoning.strip() == "2 and 2"
    assert reply.finish_reason == "stop"
    assert reply.usage is not None
    assert reply.usage.input_tokens > reply.usage.cached_tokens
    assert reply.usage.output_tokens > 0
    assert reply.model == "fake-large"
    assert reply.native is not None


@every_kind
def test_hands_text_over_as_it_arrives(kind):
    received: list[str] = []
    with model_server(script=["One two three."]) as server:
        llm = connect(server, kind)
        llm.complete(make_request(), deadline=soon(), on_text=received.append)
        llm.close()

    assert received == ["One ", "two ", "three."]


@both_ways
@every_kind
def test_returns_parallel_calls_in_order(kind, stream):
    reply = ask(kind, {"content": "Adding.", "tool_calls": CALLS}, stream=stream)

    assert [call.name for call in reply.tool_calls] == ["add", "add"]
    assert len({call.id for call in reply.tool_calls}) == 2
    squeezed = [call.arguments.replace(" ", "") for call in reply.tool_calls]
    assert squeezed == ['{"a":1,"b":2}', '{"a":30,"b":4}']
    assert reply.finish_reason == "tool_calls"
    assert reply.text == "Adding."


@both_ways
@every_kind
def test_a_reply_cut_by_length_says_so(kind, stream):
    said = {"content": "In the mid", "finish_reason": "length"}
    assert ask(kind, said, stream=stream).finish_reason == "length"


@every_kind
def test_keeps_its_connection_between_calls(kind):
    with model_server() as server:
        llm = connect(server, kind)
        for _ in range(3):
            llm.complete(make_request(), deadline=soon(), on_text=lambda _: None)
        llm.close()

    assert server.connections == 1


@every_kind
def test_sends_the_whole_conversation(kind):
    call = ToolCall(id="c1", name="add", arguments='{"a": 1, "b": 2}')
    messages = (
        Message.from_text("system", "Be brief."),
        Message.from_text("user", "1+2?"),
        Message(role="assistant", tool_calls=(call,)),
        Message.from_text("tool", "three", tool_call_id="c1"),
        Message.from_text("user", "sure?"),
    )
    with model_server() as server:
        llm = connect(server, kind)
        request = make_request(*messages, tools=(ADD,), stop=("Observation:",))
        llm.complete(request, deadline=soon())
        llm.close()
        sent = server.requests[0]

    text = sent.raw.decode()
    for piece in ("Be brief.", "1+2?", "three", "sure?", "Add two numbers."):
        assert text.count(piece) == 1
    assert "sk-secret-key" in str(sent.headers)
    assert ("Observation:" in text) == (kind != "responses")
    assert "sk-secret-key" not in text


@every_kind
def test_describes_a_tool_that_takes_one_text(kind):
    search = ToolSpec(name="search", description="Look something up.")
    with model_server() as server:
        llm = connect(server, kind)
        llm.complete(make_request(tools=(search,)), deadline=soon())
        llm.close()

    assert '"required":["input"]' in server.requests[0].raw.decode()


@every_kind
def test_asks_for_the_output_schema(kind):
    schema = {"type": "object", "properties": {"town": {"type": "string"}}}
    with model_server() as server:
        llm = connect(server, kind)
        llm.complete(make_request(output_schema=schema), deadline=soon())
        llm.close()

    assert '"town"' in server.requests[0].raw.decode()


@every_kind
def test_lists_models(kind):
    with model_server() as server:
        llm = connect(server, kind)
        cards = llm.list_models(deadline=soon())
        llm.close()

    assert [card.name for card in cards] == ["fake-large", "fake-small"]


@every_kind
def test_a_response_without_a_list_of_models_is_explained(kind):
    with model_server() as server:
        llm = make_llm(server.root, kind=kind, headers=(("X-Fault", "html"),))
        sentence = "sent a web page instead of its list of models"
        with pytest.raises(ModelCallError, match=sentence):
            llm.list_models(deadline=soon())
        llm.close()
        llm = make_llm(server.root, kind=kind, headers=(("X-Fault", "no-choices"),))
        with pytest.raises(ModelCallError) as caught:
            llm.list_models(deadline=soon())
        llm.close()

    assert caught.value.code == "bad_reply"


FAULTS = {
    "401": ("auth", False),
    "403": ("forbidden", False),
    "404": ("not_found", False),
    "429-seconds": ("rate_limit", True),
    "500": ("overloaded", True),
    "529": ("overloaded", True),
    "too-long": ("context_too_long", False),
    "reset": ("transport", True),
    "hang": ("timeout", True),
    "cut": ("transport", True),
    "ended": ("transport", True),
    "html": ("bad_reply", True),
    "empty": ("bad_reply", True),
    "no-json": ("bad_reply", True),
    "no-object": ("bad_reply", True),
    "deep": ("bad_reply", True),
    "long-number": ("bad_reply", True),
    "50mb": ("bad_reply", False),
    "bomb": ("bad_reply", False),
    "stream-no-json": ("bad_reply", True),
    "stream-empty": ("bad_reply", True),
    "error-in-200": ("overloaded", True),
}


@both_ways
@every_kind
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_has_its_class(kind, fault, stream):
    if fault in ("cut", "ended") and not stream:
        fault = "500"
    with model_server() as server:
        llm = connect(server, kind, timeout=0.4 if fault == "hang" else 20.0)
        request = make_request(model=f"fault-{fault}", stream=stream)
        with pytest.raises(ModelCallError) as caught:
            llm.complete(request, deadline=soon(), on_text=lambda _: None)
        llm.close()

    assert (caught.value.code, caught.value.may_retry) == FAULTS[fault]


@every_kind
@pytest.mark.parametrize("fault", ["hang", "drip"])
def test_the_deadline_ends_every_call(kind, fault):
    with model_server() as server:
        llm = connect(server, kind, timeout=30)
        with pytest.raises(DeadlineExceeded):
            llm.complete(
                make_request(model=f"fault-{fault}"),
                deadline=Deadline(seconds=0.2),
                on_text=lambda _: None,
            )
        llm.close()


@both_ways
@every_kind
def test_odd_arguments_come_through(kind, stream):
    odd = [
        {"id": "c1", "name": "add", "arguments": '{"a": 1, "b'},
        {"id": "c1", "name": "add", "arguments": ""},
        {"id": "", "name": "add", "arguments": '{"a": "\\u0000"}'},
    ]
    reply = ask(kind, {"tool_calls": odd}, stream=stream)

    assert len({call.id for call in reply.tool_calls}) == 3
    assert '{"a": 1, "b' in reply.tool_calls[0].arguments


@both_ways
@every_kind
def test_two_hundred_calls_are_two_hundred_calls(kind, stream):
    with model_server() as server:
        llm = connect(server, kind)
        request = make_request(model="fault-200-calls", stream=stream)
        reply = llm.complete(request, deadline=soon(), on_text=lambda _: None)
        llm.close()

    assert len({call.id for call in reply.tool_calls}) == 200
