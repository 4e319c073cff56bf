"""JSON on the wire."""

import pytest

from runs.llm.wire import (
    InvalidJson,
    encode_wire_json,
    parse_json_object,
)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b"\xff\xfe",
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"a":' * 101 + b"1" + b"}" * 101,
    ],
    ids=["nothing", "list", "null", "cut", "bytes", "digits", "abyss", "deep"],
)
def test_anything_but_a_storable_object_is_refused(raw):
    with pytest.raises(InvalidJson):
        parse_json_object(raw)


def test_brackets_in_strings_do_not_count_as_nesting():
    assert parse_json_object(b'{"a": "' + b"[{" * 500 + b'"}') == {"a": "[{" * 500}


def test_a_wide_object_is_not_a_deep_one():
    assert len(parse_json_object(b'{"a": [' + b"[]," * 500 + b"[]]}")["a"]) == 501


def test_lone_surrogates_are_replaced():
    assert (
        encode_wire_json({"a": "x\ud800y"}).decode() == '{"a":"x\ufffd\ufffd\ufffdy"}'
    )
