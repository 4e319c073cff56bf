"""What a provider must see again from its own earlier replies."""

import pytest

from runs.engine.types import Message, Reply
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
    call = reply.tool_calls[0]
    return (
        Message(role="assistant", tool_calls=(call,), native=reply.native),
        Message.from_text("tool", "3", tool_call_id=call.id),
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


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_gemini_gets_its_signatures_back(stream):
    call = {**CALL, "extra_content": {"google": {"thought_signature": "sig-2"}}}
    body = continued("gemini", {"tool_calls": [call]}, stream=stream)

    assert '"extra_content":{"google":{"thought_signature":"sig-2"}}' in body


def test_openai_does_not_get_unknown_fields_back():
    call = {**CALL, "extra_content": {"google": {"thought_signature": "sig-2"}}}

    assert "sig-2" not in continued("openai", {"tool_calls": [call]}, stream=True)
