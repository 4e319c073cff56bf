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
from tools.net.deadline import Deadline

R = TypeVar("R")

QUICK_SECONDS = 0.02
"""Until a call counts as slow: less than people notice, and most functions need."""
MAX_IDLE = 64
"""Threads kept for the next calls."""
MAX_ABANDONED_CALLS = 20
"""Left behind and still running, before the process should restart."""

_lock = threading.Lock()
_idle: deque["_CallThread"] = deque()
_abandoned = 0


def count_abandoned_calls() -> int:
    """Return how many calls of this process were left behind and still run."""
    return _abandoned


def has_too_many_abandoned_calls() -> bool:
    """Whether the process should restart."""
    return count_abandoned_calls() >= MAX_ABANDONED_CALLS


def run_or_abandon(call: Callable[[], R], deadline: Deadline) -> R:
    """Return what `call` returns, or raise what it raises.

    Raise `Interrupted` as soon as `deadline` says so, leaving the call behind.
    """
    deadline.check()
    job = _AbandonableCall(call)
    with _lock:
        helper = _idle.pop() if _idle else None
    (helper or _CallThread()).jobs.put(job)
    longest = 0.5 if deadline.on_slow is None else QUICK_SECONDS
    try:
        while not job.done.acquire(timeout=max(deadline.next_wait(longest), 0.001)):
            deadline.note_slow()
            deadline.check()
            longest = 0.5
    except Interrupted:
        if job.abandon():
            raise
    return job.result()


class _AbandonableCall(Generic[R]):
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
        try:
            self.value = self.context.run(self.call)
        except BaseException as error:  # noqa: BLE001  # SystemExit too ends only the call
            self.error = error

    def finish(self) -> None:
        """Notify the waiter, or take the call off the count."""
        global _abandoned
        with _lock:
            self.is_over = True
            _abandoned -= self.is_left
        self.done.release()

    def abandon(self) -> bool:
        """Count the call as left behind; False if it just came back."""
        global _abandoned
        with _lock:
            self.is_left = not self.is_over
            _abandoned += self.is_left
        return self.is_left

    def result(self) -> R:
        if self.error is not None:
            raise self.error
        value: R = self.value
        return value


class _CallThread(threading.Thread):
    """A daemon thread that runs one job after the other."""

    def __init__(self) -> None:
        super().__init__(name="tool", daemon=True)
        self.jobs: SimpleQueue[_AbandonableCall[Any]] = SimpleQueue()
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
