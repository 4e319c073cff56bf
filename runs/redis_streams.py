"""Notices and drafts on their way to the web processes, on two Redis streams.

Both are hints: what is lost here costs a moment, never a fact. Nothing in this module
raises or waits for Redis; one daemon thread a process does the sending.
"""

import logging
import os
import queue
import threading
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

NOTICES = "agentsite:notices"
DRAFTS = "agentsite:drafts"
NOTICES_KEPT = 10_000
DRAFTS_KEPT = 2_000

DRAFT_SECONDS = 0.1
"""Between two pieces of one call."""
DRAFT_CHARACTERS = 200_000
"""Of one call; what comes after them is seen when the reply is stored."""
WAITING = 5_000
"""Things that may wait for the sending thread; more are dropped."""
BATCH = 500
GATHER_SECONDS = 0.02
"""Between two sendings: what comes meanwhile goes together, in one exchange."""
AWAY_SECONDS = 1.0
"""How long nothing is tried after Redis failed."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Notice:
    """A run has a new `seq`; 0 where its writer does not know it."""

    run_id: int
    seq: int

    @classmethod
    def read(cls, fields: dict[str, str]) -> "Notice":
        """Return what an entry says; raise `KeyError` or `ValueError` for another's."""
        return cls(run_id=int(fields["run"]), seq=int(fields["seq"]))


@dataclass(frozen=True)
class Draft:
    """A piece of text a model has just written, `at` characters after the start."""

    run_id: int
    fence: int
    number: int
    attempt: int
    at: int
    text: str

    @classmethod
    def read(cls, fields: dict[str, str]) -> "Draft":
        """Return what an entry says; raise `KeyError` or `ValueError` for another's."""
        return cls(
            run_id=int(fields["run"]),
            fence=int(fields["fence"]),
            number=int(fields["call"]),
            attempt=int(fields["attempt"]),
            at=int(fields["at"]),
            text=fields["text"],
        )

    def fields(self) -> dict[Any, Any]:
        """Return the entry that `read` understands."""
        return {
            "run": self.run_id,
            "fence": self.fence,
            "call": self.number,
            "attempt": self.attempt,
            "at": self.at,
            "text": self.text,
        }


class DraftWriter:
    """Sends what a model writes in one attempt, at most ten pieces a second."""

    def __init__(self, run_id: int, *, fence: int, number: int, attempt: int) -> None:
        self.run_id, self.fence = run_id, fence
        self.number, self.attempt = number, attempt
        self.due = 0.0
        """When the next piece may go, by the monotonic clock."""
        self._lock = threading.Lock()
        self._pending: list[str] = []
        self._sent = 0
        self._is_closed = False

    def write(self, piece: str) -> None:
        """Take a new piece of text; it is seen within a tenth of a second."""
        with self._lock:
            is_first = not self._pending
            if self._is_closed or not piece:
                return
            self._pending.append(piece)
        if is_first and not sender().put(self):
            with self._lock:  # nobody will come for it
                self._take()

    def close(self) -> None:
        """Send no more: the reply is stored now, or the attempt has failed."""
        with self._lock:
            self._is_closed = True
            self._pending.clear()

    def next_piece(self) -> Draft | None:
        """Return what was written since the last piece, for the sending thread."""
        with self._lock:
            at, text = self._take()
        self.due = time.monotonic() + DRAFT_SECONDS
        if not text or at + len(text) > DRAFT_CHARACTERS:
            return None
        return Draft(self.run_id, self.fence, self.number, self.attempt, at, text)

    def _take(self) -> tuple[int, str]:
        at, text = self._sent, "".join(self._pending)
        self._pending.clear()
        self._sent += len(text)
        return at, text


def notify(run_id: int, seq: int) -> None:
    """Say that `run_id` was committed with `seq`; 0 says only that it was."""
    sender().put(Notice(run_id, seq))


def send_draft(
    run_id: int, *, fence: int, number: int, attempt: int, at: int, text: str
) -> None:
    """Send a piece of text at once; `DraftWriter` counts and paces them."""
    sender().put(Draft(run_id, fence, number, attempt, at, text))


def connect() -> "redis.Redis":
    """Return a connection that gives up after a second."""
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=1,
        socket_connect_timeout=1,
        encoding_errors="replace",  # lone surrogates of a model
        retry=Retry(NoBackoff(), 0),  # redis-py's own retries take seconds
    )


def sender() -> "Sender":
    """Return this process's sender."""
    return _sender(os.getpid(), settings.REDIS_URL)


@cache
def _sender(pid: int, url: str) -> "Sender":
    """Make one for each process and address; the arguments are the key."""
    return Sender(connect())


class Sender:
    """A bounded queue, and the thread that empties it into Redis."""

    def __init__(self, client: "redis.Redis") -> None:
        self._client = client
        self._queue = queue.SimpleQueue[Notice | Draft | DraftWriter]()
        self._paced: list[DraftWriter] = []
        self._away_until = 0.0
        self._due = 0.0
        """When the next batch may go, by the monotonic clock."""
        threading.Thread(target=self._run, name="stream-sender", daemon=True).start()

    def put(self, item: Notice | Draft | DraftWriter) -> bool:
        """Leave `item` for the thread; False where too many wait: it is dropped."""
        if self._queue.qsize() >= WAITING:
            return False
        self._queue.put(item)
        return True

    def _run(self) -> None:
        while True:
            try:
                self._send(self._next_batch())
            except (redis.RedisError, OSError) as error:
                if self._away_until < time.monotonic() - 60:
                    logger.warning("Redis takes no notices: %s", error)
                self._away_until = time.monotonic() + AWAY_SECONDS
            except Exception:  # the only sender must not end
                logger.exception("A notice could not be sent.")

    def _next_batch(self) -> list[Notice | Draft]:
        """Wait for something to send, and return all there is."""
        batch: list[Notice | Draft] = []
        item = self._wait()
        self._gather()
        while item is not None:
            if isinstance(item, DraftWriter):
                self._paced.append(item)
            else:
                batch.append(item)
            item = self._at_once() if len(batch) < BATCH else None
        now = time.monotonic()
        due = [writer for writer in self._paced if writer.due <= now]
        self._paced = [writer for writer in self._paced if writer.due > now]
        return batch + [piece for writer in due if (piece := writer.next_piece())]

    def _gather(self) -> None:
        """Let a batch grow that follows closely on another one."""
        now = time.monotonic()
        if now < self._due:
            time.sleep(self._due - now)
        self._due = max(now, self._due) + GATHER_SECONDS

    def _wait(self) -> Notice | Draft | DraftWriter | None:
        seconds = None
        if self._paced:
            first = min(writer.due for writer in self._paced)
            seconds = max(first - time.monotonic(), 0.001)
        try:
            return self._queue.get(timeout=seconds)
        except queue.Empty:
            return None

    def _at_once(self) -> Notice | Draft | DraftWriter | None:
        try:
            return self._queue.get_nowait()
        except queue.Empty:
            return None

    def _send(self, batch: list[Notice | Draft]) -> None:
        if not batch or time.monotonic() < self._away_until:
            return
        newest: dict[int, int] = {}
        pipe = self._client.pipeline(transaction=False)
        for item in batch:
            if isinstance(item, Notice):
                known = newest.get(item.run_id, item.seq)
                newest[item.run_id] = max(item.seq, known) if item.seq and known else 0
            else:
                pipe.xadd(DRAFTS, item.fields(), maxlen=DRAFTS_KEPT)
        for run_id, seq in newest.items():
            pipe.xadd(NOTICES, {"run": run_id, "seq": seq}, maxlen=NOTICES_KEPT)
        pipe.execute()
