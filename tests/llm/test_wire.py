"""Tests of the reading of JSON, lines and server-sent events."""

import pytest

from runs.llm.wire import BadJson, read_events, read_lines, read_object, write_json


@pytest.mark.parametrize(
    "chunks",
    [
        [b"one\ntwo\n\nthree\n"],
        [b"one\r\ntwo\r\n\r\nthree\r\n"],
        [b"one\rtwo\r\rthree\r"],
        [bytes([one]) for one in b"one\r\ntwo\r\n\r\nthree"],
        [b"one\r", b"\ntwo", b"", b"\r", b"", b"\n\nthr", b"ee"],
    ],
    ids=["newline", "both", "return", "byte by byte", "cut inside an ending"],
)
def test_lines_end_in_every_way(chunks):
    assert list(read_lines(chunks)) == [b"one", b"two", b"", b"three"]


def test_events_have_names_and_several_lines_of_data():
    raw = (
        b": comment\n\nevent: delta\ndata: {\ndata:}\nid: 7\n\n"
        b"data\n\nretry: 3\n\ndata: last\n\ndata: unfinished"
    )

    found = [(one.name, one.data) for one in read_events([raw])]

    assert found == [("delta", b"{\n}"), ("", b""), ("", b"last")]


def test_text_in_other_alphabets_survives_a_cut_in_the_middle_of_a_letter():
    raw = "data: 北京\n\n".encode()
    chunks = [raw[:8], raw[8:]]

    assert [one.data.decode() for one in read_events(chunks)] == ["北京"]


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
def test_what_is_no_object_we_can_keep_is_refused(raw):
    with pytest.raises(BadJson):
        read_object(raw)


def test_brackets_in_texts_are_no_depth():
    assert read_object(b'{"a": "' + b"[{" * 500 + b'"}') == {"a": "[{" * 500}


def test_a_wide_object_is_not_a_deep_one():
    assert len(read_object(b'{"a": [' + b"[]," * 500 + b"[]]}")["a"]) == 501


def test_lone_surrogates_can_be_sent():
    assert write_json({"a": "x\ud800y"}).decode() == '{"a":"x\ufffd\ufffd\ufffdy"}'
