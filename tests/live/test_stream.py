"""Notices and drafts on Redis streams."""

import socket
import time

import pytest
import redis

from runs import redis_streams as stream
from tests.live.text_deltas import send_text_delta
from tests.support.servers import start_redis
from tests.support.timing import wait_until


@pytest.fixture
def client(redis_url):
    """A connection that sees what was sent from here on."""
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        client.delete(stream.NOTICES, stream.TEXT_DELTAS)
        yield client


def entries(client, key, *, count):
    """Return the fields of the entries of a stream, as soon as there are `count`."""
    wait_until(lambda: client.xlen(key) >= count)
    return [fields for _, fields in client.xrange(key)]


def test_a_notice_names_the_run_and_its_seq(client):
    stream.publish_run_notice(7, 12)

    [fields] = entries(client, stream.NOTICES, count=1)
    assert stream.Notice.from_fields(fields) == stream.Notice(run_id=7, seq=12)


def test_a_piece_of_text_arrives_as_it_was_sent(client):
    send_text_delta(7, fence=2, number=3, attempt=1, at=40, text="晴, 6 °C\n")

    [fields] = entries(client, stream.TEXT_DELTAS, count=1)
    assert stream.TextDelta.from_fields(fields) == stream.TextDelta(
        7, 2, 3, 1, 40, "晴, 6 °C\n"
    )


def test_a_writer_joins_pieces_and_loses_none(client):
    writer = stream.TextDeltaWriter(7, fence=2, number=3, attempt=1)
    began = time.monotonic()
    for number in range(30):
        writer.write(f"{number} ")
        time.sleep(0.01)
    seconds = time.monotonic() - began

    whole = "".join(f"{number} " for number in range(30))

    def drafts_so_far():
        fields = entries(client, stream.TEXT_DELTAS, count=1)
        return [stream.TextDelta.from_fields(one) for one in fields]

    wait_until(lambda: sum(len(one.text) for one in drafts_so_far()) == len(whole))
    drafts = drafts_so_far()
    assert "".join(draft.text for draft in drafts) == whole
    assert [draft.at for draft in drafts] == [
        sum(len(earlier.text) for earlier in drafts[:n]) for n in range(len(drafts))
    ]
    assert len(drafts) <= 1 + seconds / stream.DELTA_INTERVAL_SECONDS + 2


def test_a_closed_writer_sends_no_more(client, monkeypatch):
    monkeypatch.setattr(stream, "DELTA_INTERVAL_SECONDS", 60.0)
    writer = stream.TextDeltaWriter(7, fence=2, number=3, attempt=1)
    writer.write("first")
    entries(client, stream.TEXT_DELTAS, count=1)
    writer.write("second")
    writer.close()
    writer.write("third")
    send_text_delta(7, fence=2, number=4, attempt=1, at=0, text="next")

    found = entries(client, stream.TEXT_DELTAS, count=2)
    assert [fields["text"] for fields in found] == ["first", "next"]


def test_text_that_is_no_unicode_harms_nobody(client):
    send_text_delta(7, fence=1, number=1, attempt=1, at=0, text="a\ud800b\0c")
    stream.publish_run_notice(7, 1)

    [fields] = entries(client, stream.TEXT_DELTAS, count=1)
    assert fields["text"] == "a?b\0c"


def test_notices_are_dropped_while_redis_hangs(settings):
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        settings.REDIS_URL = f"redis://127.0.0.1:{deaf.getsockname()[1]}/0"
        for seq in range(20_000):
            stream.publish_run_notice(7, seq)

    assert stream.get_stream_sender()._queue.qsize() <= stream.MAX_QUEUED


def test_notices_flow_again_when_redis_is_back(settings, monkeypatch, tmp_path):
    monkeypatch.setattr(stream, "REDIS_RETRY_SECONDS", 0.05)
    settings.REDIS_URL = f"unix://{tmp_path / 'r'}"
    stream.publish_run_notice(7, 1)
    time.sleep(0.3)
    server = start_redis(tmp_path / "r")
    stream.publish_run_notice(7, 2)

    with redis.Redis.from_url(settings.REDIS_URL, decode_responses=True) as client:
        [fields] = entries(client, stream.NOTICES, count=1)
    server.kill()
    server.wait()
    assert fields["seq"] == "2"


def test_notices_that_follow_closely_travel_together(client):
    for seq in range(1, 201):
        stream.publish_run_notice(7, seq)

    wait_until(lambda: entries(client, stream.NOTICES, count=1)[-1]["seq"] == "200")
    assert client.xlen(stream.NOTICES) < 100
