"""`Deadline`: how a long operation learns that it must end."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tools.errors import CallCanceled, DeadlineExceeded


class Deadline:
    """A deadline and a flag; whatever blocks looks at it at least every 0.5 seconds.

    `flag` is raised from another thread: the run was canceled or its lease is lost.
    `on_slow` is called once, in the thread that waits, if the operation takes longer
    than a moment; it must not raise.
    """

    def __init__(
        self,
        *,
        seconds: float | None = None,
        flag: threading.Event | None = None,
        on_slow: Callable[[], None] | None = None,
    ) -> None:
        self.flag = flag or threading.Event()
        self.on_slow = on_slow
        self.started = time.monotonic()
        self.ends_at = None if seconds is None else self.started + max(seconds, 0.0)

    def elapsed(self) -> float:
        """Return the seconds since this watch began."""
        return time.monotonic() - self.started

    def remaining(self) -> float | None:
        """Return the seconds to the deadline, 0.0 when it has passed, None without."""
        if self.ends_at is None:
            return None
        return max(self.ends_at - time.monotonic(), 0.0)

    def check(self) -> None:
        """Raise `CallCanceled` or `DeadlineExceeded` if the call must end."""
        if self.flag.is_set():
            raise CallCanceled
        if self.ends_at is not None and time.monotonic() >= self.ends_at:
            raise DeadlineExceeded(self.ends_at - self.started)

    def next_wait(self, longest: float = 0.5) -> float:
        """Return how long to block before looking again: at most `longest` seconds."""
        left = self.remaining()
        return longest if left is None else min(longest, left)

    def note_slow(self) -> None:
        """Report, at most once, that the operation takes longer than a moment."""
        report, self.on_slow = self.on_slow, None
        if report is not None:
            report()

    def sleep(self, seconds: float) -> None:
        """Wait `seconds`, but end at once, by raising, when the watch says so."""
        until = time.monotonic() + seconds
        while (rest := until - time.monotonic()) > 0:
            self.check()
            self.flag.wait(min(rest, self.next_wait()))
        self.check()

    @contextmanager
    def hold(self, lock: threading.Lock) -> Iterator[None]:
        """Hold `lock` in the block; raise if the call must end before it is free."""
        while not lock.acquire(timeout=max(self.next_wait(), 0.001)):
            self.check()
        try:
            yield
        finally:
            lock.release()
