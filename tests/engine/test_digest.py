"""The fingerprint of a request."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.engine import digest as digests
from runs.engine.digest import digest_request
from runs.engine.parsing.clean import clean_text
from runs.engine.types import Message, ModelRequest, ModelSettings, ToolCall
from tests.engine.make import make_tool

HELLO = Message.from_text("user", "Hello")


def make_request(**fields):
    return ModelRequest(**{"messages": (HELLO,), **fields})


def test_is_made_of_the_digests_of_the_messages_and_the_rest():
    canonical = b'{"role":"user","content":"Hello"}'
    rest = json.dumps(
        {
            "output_schema": None,
            "settings": ModelSettings().model_dump(),
            "stop": [],
            "tools": [],
        },
        separators=(",", ":"),
        sort_keys=True,
    )
    parts = hashlib.sha256(canonical).digest() + hashlib.sha256(rest.encode()).digest()

    assert digest_request(make_request()) == hashlib.sha256(parts).hexdigest()


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": (HELLO, HELLO)},
        {"messages": (Message.from_text("assistant", "Hello"),)},
        {"tools": (make_tool(),)},
        {"stop": ("x",)},
        {"settings": ModelSettings(model="m")},
        {"output_schema": {}},
    ],
)
def test_changes_with_all_that_is_sent(fields):
    assert digest_request(make_request(**fields)) != digest_request(make_request())


def test_text_that_utf8_cannot_carry_has_a_digest_too():
    request = make_request(messages=(Message.from_text("user", "\ud800"),))

    assert digest_request(request) == digest_request(
        make_request(messages=(Message.from_text("user", "\ufffd"),))
    )


def test_messages_that_were_hashed_before_do_not_count_twice():
    first = make_request()
    digest_request(first)
    more = (HELLO, Message.from_text("assistant", "Hi"))

    for messages in (more, more[:1], (), (more[1],), more):
        grown = first.model_copy(update={"messages": messages})
        assert digest_request(grown) == digest_request(make_request(messages=messages))


def test_the_digest_cache_is_bounded(monkeypatch):
    monkeypatch.setattr(digests, "_MAX_STATIC_PARTS", 2)
    requests = [make_request(settings=ModelSettings(model=str(n))) for n in range(5)]

    assert len({digest_request(request) for request in requests}) == 5
    assert len(digests._STATIC_PARTS) <= 2


@given(st.text(), st.text(), st.sampled_from(["assistant", "tool"]))
def test_the_bytes_of_a_message_are_compact_json(text, other, role):
    call = ToolCall(id=other, name="add", arguments=text)
    message = Message.from_text(role, text, tool_calls=(call,), tool_call_id=other)
    function = {"name": "add", "arguments": text}
    shape = {
        "role": role,
        "content": text or None,
        "tool_calls": [{"id": other, "type": "function", "function": function}],
        "tool_call_id": other,
    }

    written = json.dumps(shape, ensure_ascii=False, separators=(",", ":"))
    assert message.canonical == clean_text(written).encode()
