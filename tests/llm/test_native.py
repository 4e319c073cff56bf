"""What a provider must see again from its own earlier replies."""

import json

import pytest

from runs.engine.types import Message, Reply, ToolCall
from runs.llm.anthropic import build_alternating_messages
from tests.fakes.model_server import model_server
from tests.llm.make import ADD, make_llm, make_request, soon

CALL = {"id": "c1", "name": "add", "arguments": '{"a": 1, "b": 2}'}


def continued(kind: str, first: object, *, stream: bool) -> str:
    """Return the second request of a conversation whose first reply was `first`."""
    with model_server(script=[first, "Done."]) as server:
        llm = make_llm(server.root, kind=kind)
        request = make_request("1+2?", tools=(ADD,), stream=stream)
        reply = llm.complete(request, deadline=soon(), on_text=lambda _: None)
        again = make_request("1+2?", *said(reply), tools=(ADD,), stream=stream)
        llm.complete(again, deadline=soon(), on_text=lambda _: None)
        llm.close()
        return server.requests[1].raw.decode()


def said(reply: Reply) -> tuple[Message, Message]:
    """Return the reply and its result as messages, the way the engine does."""
    calls = reply.tool_calls[:1]
    return (
        Message(role="assistant", tool_calls=calls, native=reply.native),
        Message.from_text("tool", "3", tool_call_id=calls[0].id),
    )


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("kind", "piece"),
    [
        ("anthropic", '"signature":"sig-1"'),
        ("responses", '"encrypted_content":"sealed-1"'),
        ("ollama", '"thinking":"One and two."'),
    ],
)
def test_reasoning_goes_back_with_its_calls(kind, piece, stream):
    first = {"reasoning": "One and two.", "tool_calls": [CALL]}

    assert piece in continued(kind, first, stream=stream)


SIGNED = {"extra_content": {"google": {"thought_signature": "sig-2"}}}
TEXT_BLOCK = {"type": "reasoning.text", "index": 0, "text": "so", "signature": "sig-3"}
SEALED_BLOCK = {"type": "reasoning.encrypted", "index": 1, "data": "sealed-3"}
THINKING = {"type": "thinking", "thinking": "so so", "signature": "sig-4"}


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("kind", ["openai", "gemini"])
@pytest.mark.parametrize(
    "extra",
    [
        pytest.param({"reasoning_content": "One and two."}, id="deepseek"),
        pytest.param({"reasoning": "One and two."}, id="vllm"),
        pytest.param(
            {"reasoning": "so", "reasoning_details": [TEXT_BLOCK, SEALED_BLOCK]},
            id="openrouter",
        ),
        pytest.param(
            {"reasoning_content": "so so", "thinking_blocks": [THINKING]}, id="litellm"
        ),
        pytest.param(SIGNED, id="gemini"),
    ],
)
def test_a_chat_server_gets_its_own_fields_back_with_the_calls(kind, extra, stream):
    body = json.loads(
        continued(kind, {"extra": extra, "tool_calls": [CALL]}, stream=stream)
    )

    sent = body["messages"][1]
    assert {name: sent.get(name) for name in extra} == extra
    assert [call["id"] for call in sent["tool_calls"]] == ["c1"]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("kind", ["openai", "gemini"])
@pytest.mark.parametrize(
    "extra",
    [SIGNED, {"provider_specific_fields": {"thought_signature": "sig-2"}}],
    ids=["gemini", "litellm"],
)
def test_a_call_goes_back_with_its_signature(kind, extra, stream):
    two = [{**CALL, **extra}, {**CALL, "id": "c2"}]
    body = json.loads(continued(kind, {"tool_calls": two}, stream=stream))

    first = body["messages"][1]["tool_calls"][0]
    assert {name: first.get(name) for name in extra} == extra


def test_other_unknown_fields_do_not_go_back():
    first = {"extra": {"annotations": "web-1"}, "tool_calls": [CALL]}

    assert "web-1" not in continued("openai", first, stream=True)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_server_that_sent_reasoning_gets_some_with_every_reply(stream):
    script = [
        {"extra": {"reasoning_content": "So."}, "tool_calls": [CALL]},
        {"tool_calls": [{**CALL, "id": "c2"}]},
        {"extra": {"reasoning_content": ""}, "tool_calls": [{**CALL, "id": "c3"}]},
        "Done.",
    ]
    messages = ["1+2?", Message.from_text("assistant", "3"), "And now?"]
    with model_server(script=script) as server:
        llm = make_llm(server.root)
        for _ in script:
            request = make_request(*messages, tools=(ADD,), stream=stream)
            reply = llm.complete(request, deadline=soon(), on_text=lambda _: None)
            messages += said(reply) if reply.tool_calls else ()
        llm.close()

    first, last = server.requests[0].body, server.requests[3].body
    assert "reasoning_content" not in json.dumps(first)
    assert [
        message["reasoning_content"]
        for message in last["messages"]
        if message["role"] == "assistant"
    ] == ["", "So.", "", ""]


def test_a_server_that_refuses_the_reasoning_of_another_gets_none():
    def reply(request):
        if '"reasoning_content":' in request.raw.decode():
            return {"fault": "400-reasoning"}
        return "Done."

    native = {"reasoning_content": "One and two."}
    call = ToolCall(id="c1", name="add", arguments="{}")
    message = Message(role="assistant", tool_calls=(call,), native=native)
    with model_server(script=reply) as server:
        llm = make_llm(server.root)
        answer = llm.complete(make_request("1+2?", message), deadline=soon())
        llm.close()

    assert answer.text == "Done."


def test_anthropic_gets_thinking_between_two_calls_in_its_place():
    def thought(number: int) -> dict[str, str]:
        return {"type": "thinking", "thinking": "…", "signature": f"sig-{number}"}

    calls = tuple(ToolCall(id=f"c{n}", name="add", arguments="{}") for n in (1, 2))
    used = [{"type": "tool_use", "id": call.id, "name": "add"} for call in calls]
    text = {"type": "text", "text": "Adding."}
    content = [thought(1), text, used[0], thought(2), used[1]]
    message = Message.from_text(
        "assistant", "Adding.", tool_calls=calls, native={"content": content}
    )

    sent = build_alternating_messages((message,))[0]["content"]

    assert [block.get("signature") or block.get("id") for block in sent] == [
        *("sig-1", None, "c1"),
        *("sig-2", "c2"),
    ]
