"""`Watch`: what a long operation looks at to learn that it must end."""

import threading
import time

from tools.errors import CalledOff, DeadlinePassed


class Watch:
    """A deadline and a flag; whatever blocks looks at it at least every 0.5 seconds.

    `flag` is raised from another thread: the run was cancelled or its lease is lost.
    """

    def __init__(
        self, *, seconds: float | None = None, flag: threading.Event | None = None
    ) -> None:
        self.flag = flag or threading.Event()
        self.started = time.monotonic()
        self.deadline = None if seconds is None else self.started + max(seconds, 0.0)

    def elapsed(self) -> float:
        """Return the seconds since this watch began."""
        return time.monotonic() - self.started

    def left(self) -> float | None:
        """Return the seconds to the deadline, 0.0 when it has passed, None without."""
        if self.deadline is None:
            return None
        return max(self.deadline - time.monotonic(), 0.0)

    def check(self) -> None:
        """Raise `CalledOff` if the flag is up, `DeadlinePassed` if the time is over."""
        if self.flag.is_set():
            raise CalledOff
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise DeadlinePassed(self.deadline - self.started)

    def slice(self, longest: float = 0.5) -> float:
        """Return how long to block before looking again: at most `longest` seconds."""
        left = self.left()
        return longest if left is None else min(longest, left)

    def sleep(self, seconds: float) -> None:
        """Wait `seconds`, but end at once, by raising, when the watch says so."""
        until = time.monotonic() + seconds
        while (rest := until - time.monotonic()) > 0:
            self.check()
            self.flag.wait(min(rest, self.slice()))
        self.check()
