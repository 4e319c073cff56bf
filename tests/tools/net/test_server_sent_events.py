"""Lines and server-sent events."""

import pytest

from tools.net.server_sent_events import (
    StreamTooLarge,
    iter_stream_lines,
    parse_server_sent_events,
)


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
def test_lines_end_with_lf_crlf_or_cr(chunks):
    assert list(iter_stream_lines(chunks)) == [b"one", b"two", b"", b"three"]


def test_events_have_names_and_several_lines_of_data():
    raw = (
        b": comment\n\nevent: delta\ndata: {\ndata:}\nid: 7\n\n"
        b"data\n\nretry: 3\n\ndata: last\n\ndata: unfinished"
    )

    found = [(one.name, one.data) for one in parse_server_sent_events([raw])]

    assert found == [("delta", b"{\n}"), ("", b""), ("", b"last")]


def test_a_chunk_may_end_inside_a_character():
    raw = "data: 北京\n\n".encode()
    chunks = [raw[:8], raw[8:]]

    assert [one.data.decode() for one in parse_server_sent_events(chunks)] == ["北京"]


def test_a_stream_over_the_limit_is_refused_before_it_is_held():
    chunks = iter([b"data: 1\n\n", b"x" * 10, b"x" * 10, b"never read"])
    events = parse_server_sent_events(chunks, max_bytes=25)

    assert next(events).data == b"1"
    with pytest.raises(StreamTooLarge):
        next(events)
    assert list(chunks) == [b"never read"]
