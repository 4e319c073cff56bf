"""The fingerprint of a request."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.engine import digest as digests
from runs.engine.clean import clean_text
from runs.engine.digest import digest_of
from runs.engine.types import Message, ModelRequest, ModelSettings, ToolCall
from tests.engine.make import make_tool

HELLO = Message.of("user", "Hello")


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

    assert digest_of(make_request()) == hashlib.sha256(parts).hexdigest()


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": (HELLO, HELLO)},
        {"messages": (Message.of("assistant", "Hello"),)},
        {"tools": (make_tool(),)},
        {"stop": ("x",)},
        {"settings": ModelSettings(model="m")},
        {"output_schema": {}},
    ],
)
def test_changes_with_all_that_is_sent(fields):
    assert digest_of(make_request(**fields)) != digest_of(make_request())


def test_text_that_utf8_cannot_carry_has_a_digest_too():
    request = make_request(messages=(Message.of("user", "\ud800"),))

    assert digest_of(request) == digest_of(
        make_request(messages=(Message.of("user", "\ufffd"),))
    )


def test_messages_that_were_hashed_before_do_not_count_twice():
    first = make_request()
    digest_of(first)
    more = (HELLO, Message.of("assistant", "Hi"))

    for messages in (more, more[:1], (), (more[1],), more):
        grown = first.model_copy(update={"messages": messages})
        assert digest_of(grown) == digest_of(make_request(messages=messages))


def test_what_is_remembered_does_not_pile_up(monkeypatch):
    monkeypatch.setattr(digests, "_MOST_RESTS", 2)
    requests = [make_request(settings=ModelSettings(model=str(n))) for n in range(5)]

    assert len({digest_of(request) for request in requests}) == 5
    assert len(digests._RESTS) <= 2


@given(st.text(), st.text(), st.sampled_from(["assistant", "tool"]))
def test_the_bytes_of_a_message_are_compact_json(text, other, role):
    call = ToolCall(id=other, name="add", arguments=text)
    message = Message.of(role, text, tool_calls=(call,), tool_call_id=other)
    function = {"name": "add", "arguments": text}
    shape = {
        "role": role,
        "content": text or None,
        "tool_calls": [{"id": other, "type": "function", "function": function}],
        "tool_call_id": other,
    }

    written = json.dumps(shape, ensure_ascii=False, separators=(",", ":"))
    assert message.canonical == clean_text(written).encode()
