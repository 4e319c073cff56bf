"""Notices and text deltas on their way to the web processes, on two Redis streams.

Both are hints: a lost one delays a page by a moment. Nothing in this module raises or
waits for Redis; one daemon thread per process sends.
"""

import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

NOTICES = "agentsite:notices"
TEXT_DELTAS = "agentsite:drafts"
MAX_NOTICES = 10_000
MAX_TEXT_DELTAS = 2_000

DELTA_INTERVAL_SECONDS = 0.1
"""Between two deltas of one call."""
MAX_DELTA_CHARACTERS = 200_000
"""Per call; the rest is shown when the reply is stored."""
MAX_QUEUED = 5_000
"""Items that may wait for the sending thread; more are dropped."""
MAX_BATCH = 500
BATCH_INTERVAL_SECONDS = 0.02
"""Between two batches; items in between are sent together."""
REDIS_RETRY_SECONDS = 1.0
"""Pause after Redis failed."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Notice:
    """A run has a new `seq`; 0 if its writer does not know it."""

    run_id: int
    seq: int

    @classmethod
    def from_fields(cls, fields: dict[str, str]) -> "Notice":
        """Parse an entry; raise `KeyError` or `ValueError` if it is not one of ours."""
        return cls(run_id=int(fields["run"]), seq=int(fields["seq"]))


@dataclass(frozen=True)
class TextDelta:
    """Text that a model has just written, `at` characters after the start."""

    run_id: int
    fence: int
    number: int
    attempt: int
    at: int
    text: str

    @classmethod
    def from_fields(cls, fields: dict[str, str]) -> "TextDelta":
        """Parse an entry; raise `KeyError` or `ValueError` if it is not one of ours."""
        return cls(
            run_id=int(fields["run"]),
            fence=int(fields["fence"]),
            number=int(fields["call"]),
            attempt=int(fields["attempt"]),
            at=int(fields["at"]),
            text=fields["text"],
        )

    def to_fields(self) -> dict[Any, Any]:
        """Return the entry that `from_fields` parses."""
        return {
            "run": self.run_id,
            "fence": self.fence,
            "call": self.number,
            "attempt": self.attempt,
            "at": self.at,
            "text": self.text,
        }


class TextDeltaWriter:
    """Sends the text of one attempt, at most ten deltas per second."""

    def __init__(self, run_id: int, *, fence: int, number: int, attempt: int) -> None:
        self.run_id, self.fence = run_id, fence
        self.number, self.attempt = number, attempt
        self.due = 0.0
        """When the next delta may be sent, by the monotonic clock."""
        self._lock = threading.Lock()
        self._pending: list[str] = []
        self._sent = 0
        self._is_closed = False

    def write(self, piece: str) -> None:
        """Add text; it is sent within a tenth of a second."""
        with self._lock:
            is_first = not self._pending
            if self._is_closed or not piece:
                return
            self._pending.append(piece)
        if is_first and not get_stream_sender().put(self):
            with self._lock:  # the queue is full
                self._drain()

    def close(self) -> None:
        """Send nothing more: the reply is stored, or the attempt has failed."""
        with self._lock:
            self._is_closed = True
            self._pending.clear()

    def next_piece(self) -> TextDelta | None:
        """Return the text since the last delta; for the sending thread."""
        with self._lock:
            at, text = self._drain()
        self.due = time.monotonic() + DELTA_INTERVAL_SECONDS
        if not text or at + len(text) > MAX_DELTA_CHARACTERS:
            return None
        return TextDelta(self.run_id, self.fence, self.number, self.attempt, at, text)

    def _drain(self) -> tuple[int, str]:
        at, text = self._sent, "".join(self._pending)
        self._pending.clear()
        self._sent += len(text)
        return at, text


def publish_run_notice(run_id: int, seq: int) -> None:
    """Publish that `run_id` was committed with `seq`; 0 if that is unknown."""
    get_stream_sender().put(Notice(run_id, seq))


def connect_redis() -> "redis.Redis":
    """Return a client that gives up after a second."""
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=1,
        socket_connect_timeout=1,
        encoding_errors="replace",  # lone surrogates of a model
        retry=Retry(NoBackoff(), 0),  # redis-py's own retries take seconds
    )


def delete_stream_entries(find_deleted: Callable[[set[int]], set[int]]) -> None:
    """Delete what the streams have of runs that `find_deleted` names among them.

    Raises `redis.RedisError`: unlike a hint, this must not get lost.
    """
    client = connect_redis()
    for stream in (NOTICES, TEXT_DELTAS):
        entries: Any = client.xrange(stream)
        runs = {key: int(fields[b"run"]) for key, fields in entries}
        deleted = find_deleted(set(runs.values()))
        keys = [key for key, run in runs.items() if run in deleted]
        if keys:
            client.xdel(stream, *keys)


def get_stream_sender() -> "StreamSender":
    return _sender_for_process(os.getpid(), settings.REDIS_URL)


@cache
def _sender_for_process(pid: int, url: str) -> "StreamSender":
    """Create one per process and address; the arguments are the cache key."""
    return StreamSender(connect_redis())


class StreamSender:
    """A bounded queue, and the thread that sends its items to Redis."""

    def __init__(self, client: "redis.Redis") -> None:
        self._client = client
        self._queue = queue.SimpleQueue[Notice | TextDelta | TextDeltaWriter]()
        self._paced: list[TextDeltaWriter] = []
        self._retry_at = 0.0
        self._next_batch_at = 0.0
        """When the next batch may be sent, by the monotonic clock."""
        threading.Thread(target=self._run, name="stream-sender", daemon=True).start()

    def put(self, item: Notice | TextDelta | TextDeltaWriter) -> bool:
        """Queue `item`; return False if the queue is full and it was dropped."""
        if self._queue.qsize() >= MAX_QUEUED:
            return False
        self._queue.put(item)
        return True

    def _run(self) -> None:
        while True:
            try:
                self._send(self._next_batch())
            except (redis.RedisError, OSError) as error:
                if self._retry_at < time.monotonic() - 60:
                    logger.warning(
                        "Redis is unavailable, notices are dropped: %s", error
                    )
                self._retry_at = time.monotonic() + REDIS_RETRY_SECONDS
            except Exception:  # the only sender must not end
                logger.exception("sending notices failed")

    def _next_batch(self) -> list[Notice | TextDelta]:
        """Wait for items, and return all there are."""
        batch: list[Notice | TextDelta] = []
        item = self._wait_for_next()
        self._wait_for_batch()
        while item is not None:
            if isinstance(item, TextDeltaWriter):
                self._paced.append(item)
            else:
                batch.append(item)
            item = self._get_next_nowait() if len(batch) < MAX_BATCH else None
        now = time.monotonic()
        due = [writer for writer in self._paced if writer.due <= now]
        self._paced = [writer for writer in self._paced if writer.due > now]
        return batch + [piece for writer in due if (piece := writer.next_piece())]

    def _wait_for_batch(self) -> None:
        """Let a batch grow if the last one was just sent."""
        now = time.monotonic()
        if now < self._next_batch_at:
            time.sleep(self._next_batch_at - now)
        self._next_batch_at = max(now, self._next_batch_at) + BATCH_INTERVAL_SECONDS

    def _wait_for_next(self) -> Notice | TextDelta | TextDeltaWriter | None:
        seconds = None
        if self._paced:
            first = min(writer.due for writer in self._paced)
            seconds = max(first - time.monotonic(), 0.001)
        try:
            return self._queue.get(timeout=seconds)
        except queue.Empty:
            return None

    def _get_next_nowait(self) -> Notice | TextDelta | TextDeltaWriter | None:
        try:
            return self._queue.get_nowait()
        except queue.Empty:
            return None

    def _send(self, batch: list[Notice | TextDelta]) -> None:
        if not batch or time.monotonic() < self._retry_at:
            return
        newest: dict[int, int] = {}
        pipe = self._client.pipeline(transaction=False)
        for item in batch:
            if isinstance(item, Notice):
                known = newest.get(item.run_id, item.seq)
                newest[item.run_id] = max(item.seq, known) if item.seq and known else 0
            else:
                pipe.xadd(TEXT_DELTAS, item.to_fields(), maxlen=MAX_TEXT_DELTAS)
        for run_id, seq in newest.items():
            pipe.xadd(NOTICES, {"run": run_id, "seq": seq}, maxlen=MAX_NOTICES)
        pipe.execute()
