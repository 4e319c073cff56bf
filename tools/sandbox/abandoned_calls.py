"""Calls that may be left behind: each runs in a reusable daemon thread.

A thread cannot be ended from outside. A call past its deadline is left to itself and
counted until it comes back; a worker that has left too many restarts.
"""

import contextvars
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from tools.errors import Interrupted
from tools.watch import Watch

R = TypeVar("R")

MAX_IDLE = 64
"""Threads kept for the next calls."""

_lock = threading.Lock()
_idle: deque["_Helper"] = deque()
_left_behind = 0


def count() -> int:
    """Return how many calls of this process were left behind and still run."""
    return _left_behind


def run_or_leave(call: Callable[[], R], watch: Watch) -> R:
    """Return what `call` returns, or raise what it raises.

    Raise `Interrupted` as soon as `watch` says so, leaving the call behind.
    """
    watch.check()
    job = _Job(call)
    with _lock:
        helper = _idle.pop() if _idle else None
    (helper or _Helper()).jobs.put(job)
    try:
        while not job.done.acquire(timeout=max(watch.slice(), 0.001)):
            watch.check()
    except Interrupted:
        if job.leave():
            raise
    return job.result()


class _Job(Generic[R]):
    """One call; `done` is a lock because that is the cheapest thing to wait for."""

    def __init__(self, call: Callable[[], R]) -> None:
        self.call = call
        self.context = contextvars.copy_context()
        self.done = threading.Lock()
        self.done.acquire()
        self.value: Any = None
        self.error: BaseException | None = None
        self.is_over = False
        self.is_left = False

    def run(self) -> None:
        """Make the call and keep whatever comes of it."""
        try:
            self.value = self.context.run(self.call)
        except BaseException as error:  # noqa: BLE001  # SystemExit too ends only the call
            self.error = error

    def finish(self) -> None:
        """Tell who waits, or take the call off the count."""
        global _left_behind
        with _lock:
            self.is_over = True
            _left_behind -= self.is_left
        self.done.release()

    def leave(self) -> bool:
        """Count the call as left behind; False where it just came back."""
        global _left_behind
        with _lock:
            self.is_left = not self.is_over
            _left_behind += self.is_left
        return self.is_left

    def result(self) -> R:
        """Return the value or raise the error."""
        if self.error is not None:
            raise self.error
        value: R = self.value
        return value


class _Helper(threading.Thread):
    """A daemon thread that runs one job after the other."""

    def __init__(self) -> None:
        super().__init__(name="tool", daemon=True)
        self.jobs: SimpleQueue[_Job[Any]] = SimpleQueue()
        self.start()

    def run(self) -> None:
        """Run jobs until there are more idle threads than are kept."""
        while True:
            job = self.jobs.get()
            job.run()
            with _lock:
                keeps = len(_idle) < MAX_IDLE
                if keeps:
                    _idle.append(self)
            job.finish()
            del job  # its value must not live on in an idle thread
            if not keeps:
                return
