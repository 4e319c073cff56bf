"""The runs this process holds now, and how their threads learn that they must end."""

import threading
import time
from dataclasses import dataclass, field
from typing import Literal

from django.conf import settings

from runs import bell
from runs.models import Worker

Ending = Literal["cancelled", "lost"]


class LeaseLost(Exception):
    """Another worker has the run, or its state was changed: this thread is a zombie."""


class Cancelled(Exception):
    """A person stopped the run."""


class ShuttingDown(Exception):
    """The process takes no more; the run goes back into the queue."""


@dataclass
class Held:
    """One claimed run in one thread."""

    run_id: int
    fence: int
    flag: threading.Event = field(default_factory=threading.Event)
    ending: Ending | None = None
    deadline: float | None = None
    """Monotonic time after which the operation under way is no sign of life."""
    turn: "threading.Lock | None" = None
    """Held by a suspect: it may be what has ended its worker twice."""
    wrote_at: float = field(default_factory=time.monotonic)
    """Monotonic time at which the last write that succeeded began: it was ours then."""

    def prove(self) -> None:
        """Let the next suspect have its turn: this run came further, or is over."""
        turn, self.turn = self.turn, None
        if turn is not None:
            turn.release()
            process.ring_passed_over()

    def end(self, why: Ending) -> None:
        """Tell the run's thread, wherever it is, to end."""
        self.ending = self.ending or why
        self.flag.set()

    def check(self) -> None:
        """Raise what ended the run; do nothing while it may go on."""
        if self.ending == "lost":
            raise LeaseLost
        if self.ending == "cancelled":
            raise Cancelled
        if process.is_stopping.is_set():
            raise ShuttingDown

    def is_stale(self) -> bool:
        """Whether so long has passed since the last write that another may have it."""
        sure = settings.LEASE_SECONDS - settings.HEARTBEAT_SECONDS
        return time.monotonic() - self.wrote_at > sure

    def is_alive(self) -> bool:
        """Whether the thread is inside the time its operation may take."""
        return self.deadline is None or time.monotonic() < self.deadline


class Process:
    """What one worker process holds."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.held: dict[int, Held] = {}
        self.is_stopping = threading.Event()
        self.worker: Worker | None = None
        self.threads = 1
        self.turn = threading.Lock()
        """Suspects run one at a time, so that one that ends us harms no other."""
        self.passed_over = set[int]()
        """Suspects that found the turn taken."""

    def hold(self, held: Held) -> None:
        """Begin to renew the lease of a run, unless a newer claim of it is held."""
        with self.lock:
            known = self.held.get(held.run_id)
            if known is None or known.fence < held.fence:
                self.held[held.run_id] = held

    def drop(self, held: Held) -> None:
        """Stop renewing; a newer claim of the same run in this process stays."""
        with self.lock:
            if self.held.get(held.run_id) is held:
                del self.held[held.run_id]

    def ring_passed_over(self) -> None:
        """Wake those that wait for the turn; what is lost here the sweeper finds."""
        with self.lock:
            waiting, self.passed_over = self.passed_over, set()
        for run_id in waiting:
            bell.ring(run_id)

    def now(self) -> list[Held]:
        """Return what is held at this moment."""
        with self.lock:
            return list(self.held.values())


process = Process()
